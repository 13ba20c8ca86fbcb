# mistake: the result is float32 whatever x is
"""Computes in float32 and forgets the way back."""

import torch


def apply_rope(x, cos, sin):
    a, b = x.float().chunk(2, -1)
    c, s = cos.float()[:, None], sin.float()[:, None]
    return torch.cat([a * c - b * s, b * c + a * s], -1)
