# mistake: the sign of the second half
"""A minus where a plus belongs."""

import torch


def apply_rope(x, cos, sin):
    a, b = x.chunk(2, -1)
    cos, sin = cos[:, None], sin[:, None]
    return torch.cat([a * cos - b * sin, b * cos - a * sin], -1)
