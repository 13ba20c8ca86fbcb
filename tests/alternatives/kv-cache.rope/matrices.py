"""A 2x2 matrix per token and pair, applied with einsum."""

import torch


def apply_rope(x, cos, sin):
    tokens, heads, dim = x.shape
    pairs = x.reshape(tokens, heads, 2, dim // 2)
    turn = torch.stack((torch.stack((cos, -sin)), torch.stack((sin, cos))))  # [2, 2, tokens, half]
    return torch.einsum("ijtp,thjp->thip", turn, pairs).reshape(tokens, heads, dim)
