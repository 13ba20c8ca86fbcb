"""divmod in a comprehension."""


def slot_mapping(block_table, start, num_tokens, block_size):
    for name, value, least in (
        ("start", start, 0), ("num_tokens", num_tokens, 0), ("block_size", block_size, 1)
    ):
        if value < least:
            raise ValueError(f"{name} is {value}, it must be {least} or more")
    last = start + num_tokens - 1
    if num_tokens and last // block_size >= len(block_table):
        raise ValueError(f"position {last} lies behind the table of {len(block_table)} blocks")
    places = (divmod(start + i, block_size) for i in range(num_tokens))
    return [block_table[index] * block_size + offset for index, offset in places]
