# mistake: x is overwritten while it is still needed
"""In place, the second half first."""


def apply_rope(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    b[:] = b * cos + a * sin
    a[:] = a * cos - b * sin
    return x
