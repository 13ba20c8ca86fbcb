"""Attends to two halves of the keys on their own and merges by log-sum-exp."""

import torch


def attention_over_contiguous(query, key, value, scale):
    n, num_heads, head_dim = query.shape
    length, num_kv_heads = key.shape[:2]
    if length - n < 0:
        raise ValueError("more queries than positions")
    q = query.double().reshape(n, num_kv_heads, num_heads // num_kv_heads, head_dim)
    last_seen = torch.arange(length - n, length, device=query.device)

    def part(begin, end):
        k, v = key[begin:end].double(), value[begin:end].double()
        scores = torch.einsum("nkgd,lkd->nkgl", q, k) * scale
        places = torch.arange(begin, end, device=query.device)
        hidden = places[None, :] > last_seen[:, None]
        scores = scores.masked_fill(hidden[:, None, None, :], -torch.inf)
        total = scores.logsumexp(dim=-1, keepdim=True)
        safe = torch.where(total.isinf(), 0.0, total)
        return torch.einsum("nkgl,lkd->nkgd", (scores - safe).exp(), v), total

    middle = (length + 1) // 2
    first, first_total = part(0, middle)
    second, second_total = part(middle, length)
    total = torch.logaddexp(first_total, second_total)
    merged = first * (first_total - total).exp() + second * (second_total - total).exp()
    return merged.reshape(query.shape).to(query.dtype)
