# mistake: none
# Computes in float32, as one should, and forgets to go back to the query's dtype.

import torch


def attention_over_contiguous(query, key, value, scale):
    n, num_heads, head_dim = query.shape
    length, num_kv_heads, _ = key.shape
    if n > length:
        raise ValueError(f"{n} queries, but only {length} positions")
    group = num_heads // num_kv_heads
    key = key.repeat_interleave(group, dim=1)
    value = value.repeat_interleave(group, dim=1)

    scores = torch.einsum("qhd,khd->hqk", query.float(), key.float()) * scale
    future = torch.ones(n, length, dtype=torch.bool, device=query.device).triu(length - n + 1)

    weights = scores.masked_fill(future, float("-inf")).softmax(dim=-1)
    return torch.einsum("hqk,khd->qhd", weights, value.float())
