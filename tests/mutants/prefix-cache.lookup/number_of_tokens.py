# mistake: the number of tokens is returned, not the blocks
"""How much, but not where."""


def longest_hit(names, num_tokens, block_size, blocks_of):
    count = 0
    for name in names[: (num_tokens - 1) // block_size]:
        if name not in blocks_of:
            break
        count += block_size
    return count
