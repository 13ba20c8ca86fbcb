# mistake: the whole prefix is read for every block
"""Right, and quadratic."""

import hashlib


def block_names(token_ids, block_size, salt=None):
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}")
    ends = range(block_size, len(token_ids) + 1, block_size)
    return [hashlib.sha256(repr((token_ids[:end], salt)).encode()).digest() for end in ends]
