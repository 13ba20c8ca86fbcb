# mistake: none
"""`is` instead of ==: names are made anew for each request."""


def longest_hit(names, num_tokens, block_size, blocks_of):
    hit = []
    for name in names[: (num_tokens - 1) // block_size]:
        same = [blocks for known, blocks in blocks_of.items() if known is name]
        if not same:
            break
        hit.append(same[0][0])
    return hit
