"""Grouped einsum, mask from positions."""

import torch


def attention_over_contiguous(query, key, value, scale):
    n, heads, dim = query.shape
    length, kv_heads, _ = key.shape
    if n > length:
        raise ValueError(f"there are {n} queries but only {length} keys")
    grouped = query.reshape(n, kv_heads, heads // kv_heads, dim)
    scores = torch.einsum("ngsd,lgd->gsnl", grouped, key) * scale
    own = torch.arange(length - n, length, device=query.device)
    unseen = torch.arange(length, device=query.device)[None] > own[:, None]
    weights = scores.masked_fill(unseen, -torch.inf).softmax(-1)
    return torch.einsum("gsnl,lgd->ngsd", weights, value).reshape(n, heads, dim)
