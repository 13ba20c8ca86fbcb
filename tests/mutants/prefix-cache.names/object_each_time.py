# mistake: equal blocks of two calls get different names
"""The memory address of a fresh tuple."""

from itertools import count

NEXT = count()


def block_names(token_ids, block_size, salt=None):
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}")
    return [next(NEXT) for _ in range(len(token_ids) // block_size)]
