"""One slot per position from a flat view of the cache, then a loop over the queries."""

import torch


def paged_attention(query, k_blocks, v_blocks, block_table, seq_len, scale):
    num_blocks, size, kv_heads, dim = k_blocks.shape
    if len(query) > seq_len:
        raise ValueError(f"{len(query)} queries of {seq_len} positions")
    try:
        slots = [block_table[p // size] * size + p % size for p in range(seq_len)]
    except IndexError:
        raise ValueError(f"the table has no block for all of {seq_len} positions") from None
    slots = torch.tensor(slots, device=query.device)
    keys = k_blocks.reshape(num_blocks * size, kv_heads, dim)[slots]
    values = v_blocks.reshape(num_blocks * size, kv_heads, dim)[slots]
    share = query.shape[1] // kv_heads
    out = torch.zeros_like(query)
    for i, row in enumerate(query):
        end = seq_len - len(query) + i + 1
        for head in range(len(row)):
            weights = (keys[:end, head // share] @ row[head] * scale).softmax(0)
            out[i, head] = weights @ values[:end, head // share]
    return out
