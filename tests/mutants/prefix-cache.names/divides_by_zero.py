# mistake: a block size of 0 raises Python's own ZeroDivisionError
"""No check at all."""

import hashlib


def block_names(token_ids, block_size, salt=None):
    names, parent = [], b""
    for i in range(len(token_ids) // block_size):
        own = tuple(token_ids[i * block_size : (i + 1) * block_size])
        parent = hashlib.sha256(repr((parent, own, salt)).encode()).digest()
        names.append(parent)
    return names
