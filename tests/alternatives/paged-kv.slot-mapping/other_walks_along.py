"""Walks from slot to slot and looks at the table only at the start of a block."""


def slot_mapping(block_table, start, num_tokens, block_size):
    for number, least in ((start, 0), (num_tokens, 0), (block_size, 1)):
        if number < least:
            raise ValueError(f"{number} is below {least}")
    slots = []
    index, offset = divmod(start, block_size)
    blocks = iter(block_table[index:])
    slot = None
    while len(slots) < num_tokens:
        if slot is None or slot % block_size == 0:
            block = next(blocks, None)
            if block is None:
                raise ValueError("the request has no block for this position")
            slot = block * block_size + offset
            offset = 0
        slots.append(slot)
        slot += 1
    return slots
