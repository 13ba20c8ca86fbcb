"""Whole runs of slots, one per block."""


def slot_mapping(block_table, start, num_tokens, block_size):
    if min(start, num_tokens) < 0 or block_size <= 0:
        raise ValueError("negative position or count, or no block size")
    slots = []
    position, end = start, start + num_tokens
    while position < end:
        index, offset = position // block_size, position % block_size
        if index >= len(block_table):
            raise ValueError(f"no block for position {position}")
        count = min(block_size - offset, end - position)
        first = block_table[index] * block_size + offset
        slots += range(first, first + count)
        position += count
    return slots
