# mistake: the mask starts in the upper left corner, not in the lower right
"""tril() without diagonal."""

import torch


def paged_attention(query, k_blocks, v_blocks, block_table, seq_len, scale):
    n, heads, dim = query.shape
    size, kv_heads = k_blocks.shape[1:3]
    count = (seq_len + size - 1) // size
    if len(block_table) < count:
        raise ValueError(f"{seq_len} tokens need {count} blocks, there are {len(block_table)}")
    if n > seq_len:
        raise ValueError(f"{n} queries, {seq_len} tokens")
    ids = torch.tensor(block_table[:count])
    key = k_blocks[ids].reshape(-1, kv_heads, dim)[:seq_len]
    value = v_blocks[ids].reshape(-1, kv_heads, dim)[:seq_len]
    key = key.repeat_interleave(heads // kv_heads, 1).transpose(0, 1)
    value = value.repeat_interleave(heads // kv_heads, 1).transpose(0, 1)
    length = key.shape[1]
    scores = scale * query.transpose(0, 1) @ key.transpose(1, 2)
    seen = torch.ones(n, length, dtype=torch.bool).tril()
    weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
    return (weights @ value).transpose(0, 1)
