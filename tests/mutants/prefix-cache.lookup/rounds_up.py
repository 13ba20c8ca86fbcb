# mistake: none
"""One block too many when the last block is not full."""


def longest_hit(names, num_tokens, block_size, blocks_of):
    most = -(-num_tokens // block_size) - 1
    hit = []
    for name in names[: most - 1]:
        if name not in blocks_of:
            break
        hit.append(blocks_of[name][0])
    return hit
