# mistake: the salt is left out
"""A chain of digests without the salt."""

import hashlib


def block_names(token_ids, block_size, salt=None):
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}")
    names, parent = [], None
    for i in range(len(token_ids) // block_size):
        own = list(token_ids[i * block_size : (i + 1) * block_size])
        parent = hashlib.sha256(f"{parent} {own}".encode()).hexdigest()
        names.append(parent)
    return names
