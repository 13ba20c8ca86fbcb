# mistake: the result is float32 whatever x is
# Fills a tensor of torch's default dtype, so the result is float32 for every x.

import torch


def apply_rope(x, cos, sin):
    half = x.shape[-1] // 2
    out = torch.zeros(x.shape)
    out[..., :half] = x[..., :half] * cos[:, None] - x[..., half:] * sin[:, None]
    out[..., half:] = x[..., half:] * cos[:, None] + x[..., :half] * sin[:, None]
    return out
