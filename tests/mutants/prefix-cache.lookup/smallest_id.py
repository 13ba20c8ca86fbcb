# mistake: the block with the smallest id is hit, not the oldest
"""Ids say nothing about age."""

from itertools import takewhile


def longest_hit(names, num_tokens, block_size, blocks_of):
    most = (num_tokens - 1) // block_size
    known = takewhile(lambda name: name in blocks_of, names[:most])
    return [sorted(blocks_of[name])[0] for name in known]
