# mistake: a block too many is left, also where tokens remain behind it
"""The last full block is never taken."""


def longest_hit(names, num_tokens, block_size, blocks_of):
    hit = []
    for name in names[:-1][: (num_tokens - 1) // block_size]:
        if name not in blocks_of:
            break
        hit.append(blocks_of[name][0])
    return hit
