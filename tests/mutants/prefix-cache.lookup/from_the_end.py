# mistake: the search goes from the end: the last known name decides
"""Takes for granted that a known name's parents are known."""


def longest_hit(names, num_tokens, block_size, blocks_of):
    most = min(len(names), (num_tokens - 1) // block_size)
    while most > 0 and names[most - 1] not in blocks_of:
        most -= 1
    return [blocks_of[name][0] for name in names[:most]]
