# mistake: a name holds the block's own tokens only
"""Every block for itself, with the salt."""


def block_names(token_ids, block_size, salt=None):
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}")
    count = len(token_ids) // block_size
    return [(salt, *token_ids[i * block_size : (i + 1) * block_size]) for i in range(count)]
