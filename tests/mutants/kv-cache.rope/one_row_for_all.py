# mistake: the angles of the first token are used for all
"""cos[0] stands for every token."""

import torch


def apply_rope(x, cos, sin):
    a, b = x.chunk(2, -1)
    c, s = cos[0], sin[0]
    return torch.cat([a * c - b * s, b * c + a * s], -1)
