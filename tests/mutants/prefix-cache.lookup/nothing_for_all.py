# mistake: a whole prompt in the cache is taken for no hit at all
"""Gives the whole hit up instead of one block."""


def longest_hit(names, num_tokens, block_size, blocks_of):
    hit = []
    for name in names:
        blocks = blocks_of.get(name)
        if blocks is None:
            break
        hit.append(blocks[0])
    if len(hit) * block_size == num_tokens:
        return []
    return hit
