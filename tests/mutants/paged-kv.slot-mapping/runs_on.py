# mistake: the first block's neighbours are used instead of the table
"""Counts on from the first slot."""


def slot_mapping(block_table, start, num_tokens, block_size):
    if start < 0 or num_tokens < 0 or block_size < 1:
        raise ValueError(f"start {start}, num_tokens {num_tokens}, block_size {block_size}")
    end = start + num_tokens
    if end > len(block_table) * block_size:
        raise ValueError(f"{end} positions, {len(block_table)} blocks of {block_size}")
    slots = []
    if num_tokens:
        first = block_table[start // block_size] * block_size + start % block_size
        slots = list(range(first, first + num_tokens))
    return slots
