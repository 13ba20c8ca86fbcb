# mistake: none
# Always fills the first block to its end, even for fewer tokens.


def slot_mapping(block_table, start, num_tokens, block_size):
    if start < 0 or num_tokens < 0 or block_size < 1:
        raise ValueError("start and num_tokens must be 0 or more, block_size 1 or more")
    if start + num_tokens > len(block_table) * block_size:
        raise ValueError(f"{len(block_table)} blocks are too few")
    slots = []
    if num_tokens == 0:
        return slots
    first, offset = divmod(start, block_size)
    slots += range(block_table[first] * block_size + offset, (block_table[first] + 1) * block_size)
    index = first + 1
    while len(slots) < num_tokens:
        take = min(block_size, num_tokens - len(slots))
        slots += range(block_table[index] * block_size, block_table[index] * block_size + take)
        index += 1
    return slots
