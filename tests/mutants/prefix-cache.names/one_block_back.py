# mistake: only the block just before is looked at, not the whole start
"""The parent's tokens instead of the parent's name."""

import hashlib


def block_names(token_ids, block_size, salt=None):
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}")
    names, before = [], None
    for i in range(0, len(token_ids) - block_size + 1, block_size):
        own = tuple(token_ids[i : i + block_size])
        names.append((before, own, salt))
        before = own
    return names
