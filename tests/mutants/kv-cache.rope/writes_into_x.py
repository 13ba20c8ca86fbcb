# mistake: x is changed in place
"""Right numbers, but in the caller's tensor."""

def apply_rope(x, cos, sin):
    half = x.shape[-1] // 2
    a, b = x[..., :half].clone(), x[..., half:].clone()
    x[..., :half] = a * cos[:, None] - b * sin[:, None]
    x[..., half:] = b * cos[:, None] + a * sin[:, None]
    return x
