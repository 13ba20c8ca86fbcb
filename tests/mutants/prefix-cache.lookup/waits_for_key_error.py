# mistake: KeyError is waited for, which a defaultdict doesn't raise
"""Right for a dict; a defaultdict answers with an empty list."""


def longest_hit(names, num_tokens, block_size, blocks_of):
    found = []
    for i in range((num_tokens - 1) // block_size):
        if i >= len(names):
            break
        try:
            blocks_of[names[i]]
        except KeyError:
            break
        found.append(blocks_of[names[i]][0])
    return found
