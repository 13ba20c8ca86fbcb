# mistake: the block is taken out of blocks_of
"""A lookup that takes."""


def longest_hit(names, num_tokens, block_size, blocks_of):
    hit = []
    for name in names[: (num_tokens - 1) // block_size]:
        if not blocks_of.get(name):
            break
        hit.append(blocks_of[name].pop(0))
    return hit
