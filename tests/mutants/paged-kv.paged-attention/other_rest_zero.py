# mistake: none
# Always reads a last partial block, which does not exist when the last one is full.

import torch

from mini_engine.compute.attention_single import attention_over_contiguous


def paged_attention(query, k_blocks, v_blocks, block_table, seq_len, scale):
    block_size = k_blocks.shape[1]
    if seq_len > len(block_table) * block_size:
        raise ValueError("too few blocks")
    full, rest = divmod(seq_len, block_size)
    keys = [k_blocks[block] for block in block_table[:full]]
    values = [v_blocks[block] for block in block_table[:full]]
    keys.append(k_blocks[block_table[full]][:rest])
    values.append(v_blocks[block_table[full]][:rest])
    return attention_over_contiguous(query, torch.cat(keys), torch.cat(values), scale)
