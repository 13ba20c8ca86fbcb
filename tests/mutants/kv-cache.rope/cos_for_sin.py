# mistake: sin and cos are swapped
"""The two tables mixed up."""

import torch


def apply_rope(x, cos, sin):
    a, b = x.chunk(2, -1)
    c, s = sin[:, None], cos[:, None]
    return torch.cat([a * c - b * s, b * c + a * s], -1)
