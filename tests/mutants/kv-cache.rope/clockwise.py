# mistake: turned in the wrong direction
"""The sines have the other sign."""

import torch


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((b, -a), dim=-1)


def apply_rope(x, cos, sin):
    cos, sin = torch.cat((cos, cos), -1)[:, None], torch.cat((sin, sin), -1)[:, None]
    return x * cos + rotate_half(x) * sin
