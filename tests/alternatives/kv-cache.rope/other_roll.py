"""Rolls each head by half its size, so that every number meets its partner."""

import torch


def apply_rope(x, cos, sin):
    cosines = torch.cat((cos, cos), dim=1).unsqueeze(1)
    sines = torch.cat((-sin, sin), dim=1).unsqueeze(1)
    partner = x.roll(x.shape[-1] // 2, dims=-1)
    return torch.addcmul(x * cosines, partner, sines).to(x.dtype)
