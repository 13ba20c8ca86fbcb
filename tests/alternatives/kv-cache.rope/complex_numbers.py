"""A pair is a complex number; the turn is one multiplication."""

import torch


def apply_rope(x, cos, sin):
    a, b = x.float().chunk(2, dim=-1)
    turned = torch.complex(a, b) * torch.complex(cos.float(), sin.float())[:, None]
    return torch.cat((turned.real, turned.imag), dim=-1).to(x.dtype)
