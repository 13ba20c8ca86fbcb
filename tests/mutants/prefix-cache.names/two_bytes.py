# mistake: tokens are cut to 16 bits
"""Enough for this model's vocabulary, not for others."""

import hashlib


def block_names(token_ids, block_size, salt=None):
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}")
    names, parent = [], repr(salt).encode()
    for i in range(0, len(token_ids) - block_size + 1, block_size):
        own = b"".join((t % 65536).to_bytes(2, "little") for t in token_ids[i : i + block_size])
        parent = hashlib.sha256(parent + b"/" + own).digest()
        names.append(parent)
    return names
