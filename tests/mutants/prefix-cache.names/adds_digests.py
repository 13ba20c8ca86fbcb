# mistake: the order of the blocks is lost
"""The digests so far are added up, and a sum has no order."""

import hashlib


def block_names(token_ids, block_size, salt=None):
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}")
    names, total = [], 0
    for i in range(0, len(token_ids) - block_size + 1, block_size):
        own = tuple(token_ids[i : i + block_size])
        total += int.from_bytes(hashlib.sha256(repr(own).encode()).digest(), "big")
        names.append((salt, i, total))
    return names
