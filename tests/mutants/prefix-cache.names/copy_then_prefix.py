# mistake: the whole prefix is read for every block
"""Quadratic behind a copy, where no read of the argument shows it."""

import hashlib


def block_names(token_ids, block_size, salt=None):
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}")
    ids = list(token_ids)
    ends = range(block_size, len(ids) + 1, block_size)
    return [hashlib.sha256(repr((ids[:end], salt)).encode()).digest() for end in ends]
