# mistake: none
# No tokens: returns before it looks at the other arguments.


def slot_mapping(block_table, start, num_tokens, block_size):
    if num_tokens == 0:
        return []
    if start < 0 or num_tokens < 0 or block_size < 1:
        raise ValueError("start and num_tokens must be 0 or more, block_size 1 or more")
    if start + num_tokens > len(block_table) * block_size:
        raise ValueError(f"{len(block_table)} blocks are too few")
    return [
        block_table[p // block_size] * block_size + p % block_size
        for p in range(start, start + num_tokens)
    ]
