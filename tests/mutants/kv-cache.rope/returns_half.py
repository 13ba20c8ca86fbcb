# mistake: none
"""Forgets to put the halves together."""

def apply_rope(x, cos, sin):
    a, b = x.chunk(2, -1)
    return a * cos[:, None] - b * sin[:, None]
