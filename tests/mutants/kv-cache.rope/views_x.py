# mistake: none
"""view() fails on x that is not contiguous."""

import torch


def apply_rope(x, cos, sin):
    tokens, heads, dim = x.shape
    pairs = x.view(tokens * heads, 2, dim // 2)
    c = cos.repeat_interleave(heads, 0)
    s = sin.repeat_interleave(heads, 0)
    a, b = pairs[:, 0], pairs[:, 1]
    return torch.cat((a * c - b * s, b * c + a * s), -1).view(tokens, heads, dim)
