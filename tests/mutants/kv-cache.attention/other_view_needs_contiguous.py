# mistake: none
# Merges heads by view, which needs tensors that are contiguous in memory.

import torch


def attention_over_contiguous(query, key, value, scale):
    n, num_heads, head_dim = query.shape
    length, num_kv_heads, _ = key.shape
    if n > length:
        raise ValueError(f"{n} queries, but only {length} positions")
    group = num_heads // num_kv_heads
    key = key.repeat_interleave(group, dim=1)
    value = value.repeat_interleave(group, dim=1)

    q = query.view(n, num_heads * head_dim).view(n, num_heads, head_dim).transpose(0, 1)
    k, v = key.transpose(0, 1), value.transpose(0, 1)
    scores = q @ k.transpose(1, 2) * scale
    future = torch.ones(n, length, dtype=torch.bool, device=query.device).triu(length - n + 1)

    weights = scores.masked_fill(future, float("-inf")).softmax(dim=-1)
    return (weights @ v).transpose(0, 1)
