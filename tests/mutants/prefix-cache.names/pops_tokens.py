# mistake: token_ids is changed
"""Eats the list from the front."""

import hashlib


def block_names(token_ids, block_size, salt=None):
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}")
    names, parent = [], b""
    while len(token_ids) >= block_size:
        own = [token_ids.pop(0) for _ in range(block_size)]
        parent = hashlib.sha256(repr((parent, own, salt)).encode()).digest()
        names.append(parent)
    return names
