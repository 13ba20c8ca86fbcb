# mistake: none
"""Half a turn too little: the sine is halved."""

import torch


def apply_rope(x, cos, sin):
    a, b = x.chunk(2, -1)
    c, s = cos.unsqueeze(1), sin.unsqueeze(1) / 2
    return torch.cat([a * c - b * s, b * c + a * s], -1)
