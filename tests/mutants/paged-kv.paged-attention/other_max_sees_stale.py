# mistake: none
# The largest score is sought before the mask: what lies behind the end can be it.

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
    blocks = list(block_table[:num_blocks])
    keys = k_blocks[blocks].flatten(0, 1).repeat_interleave(group, dim=1)
    values = v_blocks[blocks].flatten(0, 1).repeat_interleave(group, dim=1)
    places = torch.arange(keys.shape[0], device=query.device)
    last = torch.arange(seq_len - n, seq_len, device=query.device)
    hidden = places[None, :] > last[:, None]
    scores = torch.einsum("qhd,khd->hqk", query, keys) * scale
    exps = torch.exp(scores - scores.amax(dim=-1, keepdim=True)) * ~hidden
    weights = exps / exps.sum(dim=-1, keepdim=True)
    return torch.einsum("hqk,khd->qhd", weights, values).to(query.dtype)
