# mistake: names behind an unknown one are hits, too
"""`continue` where `break` belongs."""


def longest_hit(names, num_tokens, block_size, blocks_of):
    hit = []
    for name in names:
        if (len(hit) + 1) * block_size >= num_tokens:
            break
        if name not in blocks_of:
            continue
        hit.append(blocks_of[name][0])
    return hit
