# mistake: all blocks of a name are returned
"""extend where append belongs."""


def longest_hit(names, num_tokens, block_size, blocks_of):
    hit = []
    for name in names[: (num_tokens - 1) // block_size]:
        if name not in blocks_of:
            break
        hit.extend(blocks_of[name])
    return hit
