# mistake: an unknown name raises KeyError
"""Leaves an unknown name to the dict, and catches nothing."""


def longest_hit(names, num_tokens, block_size, blocks_of):
    plain = dict(blocks_of)
    return [plain[name][0] for name in names[: (num_tokens - 1) // block_size]]
