# mistake: none
# A block size of 0 passes the check: ZeroDivisionError, or nothing at all.


def slot_mapping(block_table, start, num_tokens, block_size):
    if start < 0 or num_tokens < 0 or block_size < 0:
        raise ValueError("negative numbers make no sense here")
    slots = []
    for position in range(start, start + num_tokens):
        index, offset = divmod(position, block_size)
        if index >= len(block_table):
            raise ValueError("the table is too short")
        slots.append(block_table[index] * block_size + offset)
    return slots
