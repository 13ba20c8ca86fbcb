"""Gathers whole blocks and masks what is beyond seq_len."""

import torch
import torch.nn.functional as F


def paged_attention(query, k_blocks, v_blocks, block_table, seq_len, scale):
    size = k_blocks.shape[1]
    count = -(-seq_len // size)
    if count > len(block_table):
        raise ValueError(f"{len(block_table)} blocks are too few for {seq_len} tokens")
    if len(query) > seq_len:
        raise ValueError("there are more queries than tokens")
    index = torch.as_tensor(list(block_table)[:count], device=query.device)
    keys = torch.index_select(k_blocks, 0, index).flatten(0, 1).transpose(0, 1)[None]
    values = torch.index_select(v_blocks, 0, index).flatten(0, 1).transpose(0, 1)[None]
    own = torch.arange(seq_len - len(query), seq_len, device=query.device)
    mask = torch.arange(count * size, device=query.device)[None] <= own[:, None]
    out = F.scaled_dot_product_attention(
        query.transpose(0, 1)[None], keys, values, attn_mask=mask, scale=scale, enable_gqa=True
    )
    return out[0].transpose(0, 1)
