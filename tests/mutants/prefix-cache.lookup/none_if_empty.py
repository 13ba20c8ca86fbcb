# mistake: None is returned where nothing is known
"""No hit is an empty list."""


def longest_hit(names, num_tokens, block_size, blocks_of):
    hit = []
    for name in names[: (num_tokens - 1) // block_size]:
        if name not in blocks_of:
            break
        hit.append(blocks_of[name][0])
    if hit:
        return hit
