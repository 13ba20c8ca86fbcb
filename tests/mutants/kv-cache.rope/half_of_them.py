# mistake: only the first half is turned
"""The second half of each head goes through unturned."""

import torch


def apply_rope(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos[:, None] - b * sin[:, None], b], -1)
