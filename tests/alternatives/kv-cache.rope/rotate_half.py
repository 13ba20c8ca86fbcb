"""The form that transformers uses, with doubled tables."""

import torch


def apply_rope(x, cos, sin):
    half = x.shape[-1] // 2
    cos, sin = cos.repeat(1, 2)[:, None], sin.repeat(1, 2)[:, None]
    other = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return x * cos + other * sin
