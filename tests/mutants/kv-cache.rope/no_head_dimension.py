# mistake: cos and sin lack a dimension for the heads
"""cos and sin meet x without a dimension for the heads."""

import torch


def apply_rope(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
