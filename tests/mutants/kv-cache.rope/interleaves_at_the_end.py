# mistake: halves are read, but the result is interleaved
"""Reads halves, writes neighbours."""

import torch


def apply_rope(x, cos, sin):
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    c, s = cos[:, None, :], sin[:, None, :]
    return torch.stack((a * c - b * s, b * c + a * s), dim=-1).flatten(-2)
