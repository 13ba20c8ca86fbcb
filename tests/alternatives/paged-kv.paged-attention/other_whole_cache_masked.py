"""Attends over the whole cache; each slot knows its position, or that it has none."""

import torch


def paged_attention(query, k_blocks, v_blocks, block_table, seq_len, scale):
    n = query.shape[0]
    num_blocks, block_size, num_kv_heads, head_dim = k_blocks.shape
    if len(block_table) * block_size < seq_len or seq_len < n:
        raise ValueError("the sizes do not fit")
    never = seq_len  # a position that no query sees
    position = torch.full((num_blocks * block_size,), never, device=query.device)
    for p in range(seq_len):
        position[block_table[p // block_size] * block_size + p % block_size] = p
    hidden = position[None] > torch.arange(seq_len - n, seq_len, device=query.device)[:, None]
    out = torch.empty_like(query)
    for head in range(query.shape[1]):
        kv_head = head * num_kv_heads // query.shape[1]
        keys = k_blocks[:, :, kv_head].reshape(-1, head_dim).double()
        values = v_blocks[:, :, kv_head].reshape(-1, head_dim).double()
        scores = (query[:, head].double() @ keys.T * scale).masked_fill(hidden, -torch.inf)
        out[:, head] = (scores.softmax(dim=-1) @ values).to(query.dtype)
    return out
