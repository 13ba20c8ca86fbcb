"""Finds everything that is known, then gives back what covers the last token."""


def longest_hit(names, num_tokens, block_size, blocks_of):
    hit = []
    for name in names:
        if name not in blocks_of or len(hit) * block_size >= num_tokens:
            break
        hit.append(next(iter(blocks_of[name])))
    while hit and len(hit) * block_size > num_tokens - 1:
        hit.pop()
    return hit
