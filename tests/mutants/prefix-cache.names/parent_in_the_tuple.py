# mistake: a name holds its parent, and with it the whole prefix
"""Parent, own tokens and salt in a tuple: right for a short prompt."""


def block_names(token_ids, block_size, salt=None):
    if block_size < 1:
        raise ValueError(f"block_size must be at least 1, got {block_size}")
    names = []
    p = None
    for i in range(len(token_ids) // block_size):
        block = token_ids[i * block_size : (i + 1) * block_size]
        p = (p, tuple(block), salt)
        names.append(p)
    return names
