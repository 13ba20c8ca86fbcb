# mistake: a negative block size is not refused
"""range() refuses a step of 0 by itself, and nothing else."""

import hashlib


def block_names(token_ids, block_size, salt=None):
    names, parent = [], b""
    for i in range(0, len(token_ids) - block_size + 1, block_size):
        own = tuple(token_ids[i : i + block_size])
        parent = hashlib.sha256(repr((parent, own, salt)).encode()).digest()
        names.append(parent)
    return names
