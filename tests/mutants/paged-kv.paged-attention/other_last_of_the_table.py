# mistake: none
# Takes the last partial block from the end of the table, which may be longer.

import torch


def paged_attention(query, k_blocks, v_blocks, block_table, seq_len, scale):
    n, num_heads, head_dim = query.shape
    _, block_size, num_kv_heads, _ = k_blocks.shape
    num_blocks = (seq_len + block_size - 1) // block_size
    if num_blocks > len(block_table):
        raise ValueError(f"{len(block_table)} blocks are too few for {seq_len} tokens")
    if n > seq_len:
        raise ValueError(f"{n} queries for {seq_len} tokens")
    group = num_heads // num_kv_heads
    needed = list(block_table[: (seq_len - 1) // block_size]) + [block_table[-1]]
    keys = k_blocks[needed].flatten(0, 1)[:seq_len].repeat_interleave(group, dim=1)
    values = v_blocks[needed].flatten(0, 1)[:seq_len].repeat_interleave(group, dim=1)
    scores = torch.einsum("qhd,khd->hqk", query, keys) * scale
    hidden = torch.ones(n, seq_len, dtype=torch.bool).triu(seq_len - n + 1)
    weights = scores.masked_fill(hidden, float("-inf")).softmax(dim=-1)
    return torch.einsum("hqk,khd->qhd", weights, values)
