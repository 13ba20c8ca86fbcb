# mistake: the last full block has no name
"""Mixes up naming with the lookup, which leaves one token."""

import hashlib


def block_names(token_ids, block_size, salt=None):
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}")
    names, parent = [], b""
    for i in range((len(token_ids) - 1) // block_size):
        own = tuple(token_ids[i * block_size : (i + 1) * block_size])
        parent = hashlib.sha256(repr((parent, own, salt)).encode()).digest()
        names.append(parent)
    return names
