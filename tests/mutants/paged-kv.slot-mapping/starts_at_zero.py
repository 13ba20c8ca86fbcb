# mistake: positions are counted from the chunk, not from the request
"""range(num_tokens)."""


def slot_mapping(block_table, start, num_tokens, block_size):
    if start < 0 or num_tokens < 0 or block_size < 1:
        raise ValueError(f"start {start}, num_tokens {num_tokens}, block_size {block_size}")
    end = start + num_tokens
    if end > len(block_table) * block_size:
        raise ValueError(f"{end} positions, {len(block_table)} blocks of {block_size}")
    slots = []
    for position in range(num_tokens):
        block = block_table[position // block_size]
        slots.append(block * block_size + position % block_size)
    return slots
