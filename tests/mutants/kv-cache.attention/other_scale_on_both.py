# mistake: the scale is applied twice
# Multiplies the queries and the keys by the scale, so it counts twice.

import torch


def attention_over_contiguous(query, key, value, scale):
    n, num_heads, head_dim = query.shape
    length, num_kv_heads, _ = key.shape
    if n > length:
        raise ValueError(f"{n} queries, but only {length} positions")
    group = num_heads // num_kv_heads
    key = key.repeat_interleave(group, dim=1)
    value = value.repeat_interleave(group, dim=1)

    query, key = query * scale, key * scale
    scores = torch.einsum("qhd,khd->hqk", query, key)
    future = torch.ones(n, length, dtype=torch.bool, device=query.device).triu(length - n + 1)

    weights = scores.masked_fill(future, float("-inf")).softmax(dim=-1)
    return torch.einsum("hqk,khd->qhd", weights, value)
