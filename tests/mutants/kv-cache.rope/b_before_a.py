# mistake: the first half is made from the new second half
"""b is overwritten before a needs it."""

import torch


def apply_rope(x, cos, sin):
    a, b = x.chunk(2, -1)
    cos, sin = cos[:, None], sin[:, None]
    b = b * cos + a * sin
    a = a * cos - b * sin
    return torch.cat([a, b], -1)
