# mistake: none
# Returns a list of numpy's integers, not of ints.

import numpy as np


def slot_mapping(block_table, start, num_tokens, block_size):
    if start < 0 or num_tokens < 0 or block_size < 1:
        raise ValueError("start and num_tokens must be 0 or more, block_size 1 or more")
    if start + num_tokens > len(block_table) * block_size:
        raise ValueError(f"{len(block_table)} blocks are too few")
    positions = np.arange(start, start + num_tokens)
    table = np.array(block_table, dtype=np.int64)
    if num_tokens == 0:
        return []
    return list(table[positions // block_size] * block_size + positions % block_size)
