# mistake: asking for an unknown name adds it to blocks_of
"""A side effect of [] on a defaultdict."""


def longest_hit(names, num_tokens, block_size, blocks_of):
    hit = []
    for name in names[: (num_tokens - 1) // block_size]:
        found = blocks_of[name]
        if len(found) == 0:
            return hit
        hit.append(found[0])
    return hit
