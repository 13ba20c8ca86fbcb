# mistake: the whole prompt is taken from the cache
"""Nothing is left to compute."""


def longest_hit(names, num_tokens, block_size, blocks_of):
    hit = []
    for name in names:
        if name not in blocks_of:
            break
        hit.append(blocks_of[name][0])
    return hit
