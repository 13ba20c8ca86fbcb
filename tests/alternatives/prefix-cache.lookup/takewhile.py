"""itertools, bound by the number of tokens."""

from itertools import islice, takewhile


def longest_hit(names, num_tokens, block_size, blocks_of):
    bounded = islice(names, max(0, (num_tokens - 1) // block_size))
    return [blocks_of[name][0] for name in takewhile(blocks_of.__contains__, bounded)]
