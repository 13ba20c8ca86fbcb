# mistake: an empty salt counts as none
"""`if salt:` takes the empty string for no salt."""

import hashlib


def block_names(token_ids, block_size, salt=None):
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}")
    parent = ("salt", salt) if salt else ()
    names = []
    for i in range(0, len(token_ids) - block_size + 1, block_size):
        parent = (parent, tuple(token_ids[i : i + block_size]))
        names.append(parent)
    return names
