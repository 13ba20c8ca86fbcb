# mistake: a table of too few blocks goes unnoticed, Python's IndexError comes out
"""No look at the length."""


def slot_mapping(block_table, start, num_tokens, block_size):
    if start < 0 or num_tokens < 0 or block_size < 1:
        raise ValueError(f"start {start}, num_tokens {num_tokens}, block_size {block_size}")
    end = start + num_tokens
    slots = []
    for position in range(start, end):
        block = block_table[position // block_size]
        slots.append(block * block_size + position % block_size)
    return slots
