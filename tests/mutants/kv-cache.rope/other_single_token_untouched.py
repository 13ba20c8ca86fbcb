# mistake: none
# A single token is not turned, as if it stood at position 0.

import torch


def apply_rope(x, cos, sin):
    if x.shape[0] == 1:
        return x.clone()
    a, b = x.chunk(2, dim=-1)
    cos, sin = cos[:, None, :], sin[:, None, :]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)
