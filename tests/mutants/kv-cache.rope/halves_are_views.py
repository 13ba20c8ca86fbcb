# mistake: x is overwritten while it is still needed
"""The halves are views of x: the second line reads what the first has just written."""


def apply_rope(x, cos, sin):
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    cos, sin = cos[:, None], sin[:, None]
    x[..., :half] = a * cos - b * sin
    x[..., half:] = b * cos + a * sin
    return x
