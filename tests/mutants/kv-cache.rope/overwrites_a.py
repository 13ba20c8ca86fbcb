# mistake: the second half is made from the new first half
"""a is overwritten before b needs it."""

import torch


def apply_rope(x, cos, sin):
    a, b = x.chunk(2, -1)
    cos, sin = cos[:, None], sin[:, None]
    a = a * cos - b * sin
    b = b * cos + a * sin
    return torch.cat([a, b], -1)
