# mistake: neighbours are paired instead of the two halves
"""Pairs as in the paper: 2i with 2i + 1."""

import torch


def apply_rope(x, cos, sin):
    even, odd = x[..., 0::2], x[..., 1::2]
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    out = torch.empty_like(x)
    out[..., 0::2] = even * cos - odd * sin
    out[..., 1::2] = even * sin + odd * cos
    return out
