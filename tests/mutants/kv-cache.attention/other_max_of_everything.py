# mistake: none
# Takes the largest score of all heads and rows away: small rows become 0 / 0.

import torch


def attention_over_contiguous(query, key, value, scale):
    n, num_heads, head_dim = query.shape
    length, num_kv_heads, _ = key.shape
    if n > length:
        raise ValueError(f"{n} queries, but only {length} positions")
    group = num_heads // num_kv_heads
    key = key.repeat_interleave(group, dim=1)
    value = value.repeat_interleave(group, dim=1)

    scores = torch.einsum("qhd,khd->hqk", query, key) * scale
    future = torch.ones(n, length, dtype=torch.bool, device=query.device).triu(length - n + 1)

    scores = scores.masked_fill(future, float("-inf"))
    exps = torch.exp(scores - scores.max())
    weights = exps / exps.sum(dim=-1, keepdim=True)
    return torch.einsum("hqk,khd->qhd", weights, value)
