"""No mask in sorted order: the smallest logit that stays, per filter."""

import torch


def filter_logits(logits, temperature, min_p, top_k, top_p):
    x = torch.log_softmax((logits - logits.amax(-1, keepdim=True)) / temperature[:, None], -1)
    n, size = x.shape
    x = x.masked_fill(x < min_p.log()[:, None] + x.amax(-1, keepdim=True), float("-inf"))
    falling = x.sort(-1, descending=True).values
    k = torch.where((top_k > 0) & (top_k < size), top_k, size)
    x = x.masked_fill(x < falling.gather(1, k[:, None] - 1), float("-inf"))
    falling = x.sort(-1, descending=True).values
    sums = falling.softmax(-1).cumsum(-1)
    count = (sums < top_p[:, None]).sum(-1, keepdim=True).clamp(max=size - 1)
    least = torch.where(top_p[:, None] < 1, falling.gather(1, count), -torch.inf)
    return x.masked_fill(x < least, float("-inf"))
