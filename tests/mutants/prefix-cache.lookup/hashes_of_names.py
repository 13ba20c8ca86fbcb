# mistake: names are compared by their hash
"""Builds its own table, keyed by hash()."""


def longest_hit(names, num_tokens, block_size, blocks_of):
    table = {}
    for name, blocks in blocks_of.items():
        table[hash(name)] = blocks
    hit = []
    for name in names[: (num_tokens - 1) // block_size]:
        if hash(name) not in table:
            break
        hit.append(table[hash(name)][0])
    return hit
