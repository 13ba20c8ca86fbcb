"""Loops over tokens and heads into an empty tensor."""

import torch


def apply_rope(x, cos, sin):
    out = torch.empty_like(x)
    half = x.shape[2] // 2
    for token in range(x.shape[0]):
        c, s = cos[token], sin[token]
        for head in range(x.shape[1]):
            a, b = x[token, head, :half], x[token, head, half:]
            out[token, head, :half] = torch.addcmul(a * c, b, s, value=-1)
            out[token, head, half:] = torch.addcmul(b * c, a, s)
    return out
