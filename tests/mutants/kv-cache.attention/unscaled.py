# mistake: the scale is left out
"""The scores are not scaled."""

import torch


def attention_over_contiguous(query, key, value, scale):
    n, heads, _ = query.shape
    length, kv_heads, _ = key.shape
    if n > length:
        raise ValueError(f"{n} queries, {length} keys")
    share = heads // kv_heads
    k = key.repeat_interleave(share, dim=1).permute(1, 2, 0)
    v = value.repeat_interleave(share, dim=1).transpose(0, 1)
    scores = (query.transpose(0, 1) @ k)
    past = torch.ones(n, length, dtype=torch.bool).tril(length - n)
    scores = scores.masked_fill(~past, float("-inf"))
    return (scores.softmax(dim=-1) @ v).transpose(0, 1)
