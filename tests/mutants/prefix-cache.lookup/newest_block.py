# mistake: the newest block is hit, not the oldest
"""The last of the list."""

from itertools import takewhile


def longest_hit(names, num_tokens, block_size, blocks_of):
    most = (num_tokens - 1) // block_size
    known = takewhile(lambda name: name in blocks_of, names[:most])
    return [blocks_of[name][-1] for name in known]
