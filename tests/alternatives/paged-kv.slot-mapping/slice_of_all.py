"""Writes down every slot of the request, then cuts the chunk out."""


from itertools import chain


class TooShort(ValueError):
    pass


def slot_mapping(block_table, start, num_tokens, block_size):
    if start < 0 or num_tokens < 0 or block_size < 1:
        raise ValueError("start and num_tokens are 0 or more, block_size is 1 or more")
    blocks = (range(b * block_size, b * block_size + block_size) for b in block_table)
    every = list(chain.from_iterable(blocks))
    chunk = every[start : start + num_tokens]
    if len(chunk) < num_tokens:
        raise TooShort(f"{len(every)} slots for {start + num_tokens} positions")
    return chunk
