"""Sorts upwards, as vLLM does, and drops from the worst on."""

import torch


def filter_logits(logits, temperature, min_p, top_k, top_p):
    x = (logits - logits.amax(-1, keepdim=True)) / temperature[:, None]
    probs = x.softmax(-1)
    x = x.masked_fill(probs < min_p[:, None] * probs.amax(-1, keepdim=True), float("-inf"))
    rising, order = x.sort(-1)
    size = x.shape[1]
    k = torch.where((top_k > 0) & (top_k < size), top_k, size)
    rising = rising.masked_fill(torch.arange(size) < (size - k)[:, None], float("-inf"))
    worse = rising.softmax(-1).cumsum(-1)
    drop = (worse <= 1 - top_p[:, None]) & (top_p[:, None] < 1)
    drop[:, -1] = False
    rising = rising.masked_fill(drop, float("-inf"))
    return torch.zeros_like(x).scatter(1, order, rising)
