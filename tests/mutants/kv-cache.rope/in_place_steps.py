# mistake: x is changed in place
"""Several steps in place, each on what the one before has left."""

import torch


def apply_rope(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    old = a.clone()
    a.mul_(cos[:, None]).sub_(b * sin[:, None])
    b.mul_(cos[:, None]).add_(old * sin[:, None])
    return torch.cat((a, b), dim=-1)
