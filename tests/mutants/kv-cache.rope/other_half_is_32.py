# mistake: none
# Half of a head is taken for 32 numbers, as in SmolLM2.

import torch


def apply_rope(x, cos, sin):
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    a, b = x[..., :32], x[..., 32:]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)
