"""Streams over the keys with a running maximum, as FlashAttention does."""

import torch


def attention_over_contiguous(query, key, value, scale):
    n, heads, dim = query.shape
    length, kv_heads, _ = key.shape
    if n > length:
        raise ValueError(f"n = {n} is larger than L = {length}")
    q = query.float()
    best = torch.full((n, heads), -torch.inf, device=q.device)
    total = torch.zeros(n, heads, device=q.device)
    mixed = torch.zeros(n, heads, dim, device=q.device)
    for position in range(length):
        k = key[position].float().repeat_interleave(heads // kv_heads, 0)
        v = value[position].float().repeat_interleave(heads // kv_heads, 0)
        first = max(0, position - (length - n))
        score = (q[first:] * k).sum(-1) * scale
        top = torch.maximum(best[first:], score)
        keep, add = (best[first:] - top).exp(), (score - top).exp()
        total[first:] = total[first:] * keep + add
        mixed[first:] = mixed[first:] * keep[..., None] + add[..., None] * v
        best[first:] = top
    return (mixed / total[..., None]).to(query.dtype)
