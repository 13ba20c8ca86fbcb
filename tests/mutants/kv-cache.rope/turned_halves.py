# mistake: halves swapped in the result
"""The halves come back in the wrong order."""

import torch


def apply_rope(x, cos, sin):
    a, b = x.chunk(2, -1)
    c, s = cos.unsqueeze(1), sin.unsqueeze(1)
    return torch.cat([b * c + a * s, a * c - b * s], -1)
