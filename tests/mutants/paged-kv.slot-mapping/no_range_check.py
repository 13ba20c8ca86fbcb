# mistake: negative numbers go unnoticed
"""Negative positions count from the end."""


def slot_mapping(block_table, start, num_tokens, block_size):
    end = start + num_tokens
    if end > len(block_table) * block_size:
        raise ValueError(f"{end} positions, {len(block_table)} blocks of {block_size}")
    slots = []
    for position in range(start, end):
        block = block_table[position // block_size]
        slots.append(block * block_size + position % block_size)
    return slots
