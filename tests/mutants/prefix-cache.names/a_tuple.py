# mistake: none
"""Names as a tuple where a list is asked for."""

import hashlib


def block_names(token_ids, block_size, salt=None):
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}")
    names, parent = (), b""
    for i in range(0, len(token_ids) - block_size + 1, block_size):
        own = tuple(token_ids[i : i + block_size])
        parent = hashlib.sha256(repr((parent, own, salt)).encode()).digest()
        names += (parent,)
    return names
