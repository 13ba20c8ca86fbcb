# mistake: none
# Blocks have 16 slots, whatever the shape of the cache says.

from mini_engine.compute.attention_single import attention_over_contiguous


def paged_attention(query, k_blocks, v_blocks, block_table, seq_len, scale):
    if -(-seq_len // 16) > len(block_table):
        raise ValueError("too few blocks")
    slots = [block_table[p // 16] * 16 + p % 16 for p in range(seq_len)]
    keys, values = k_blocks.flatten(0, 1)[slots], v_blocks.flatten(0, 1)[slots]
    return attention_over_contiguous(query, keys, values, scale)
