# mistake: the whole last block is read where a request has one row
"""Lets the mask hide the end of the last block, and masks no single row."""

import torch


def varlen_attention(query, k_blocks, v_blocks, query_starts, seq_lens, block_tables, scale):
    size, kv_heads = k_blocks.shape[1:3]
    share = query.shape[1] // kv_heads
    out = torch.zeros_like(query)
    for i in range(len(seq_lens)):
        start, end, length = int(query_starts[i]), int(query_starts[i + 1]), int(seq_lens[i])
        n, count = end - start, -(-length // size)
        if count > block_tables.shape[1]:
            raise ValueError(f"request {i}: {length} tokens in {block_tables.shape[1]} blocks")
        if n > length:
            raise ValueError(f"request {i}: {n} rows for {length} positions")
        ids = block_tables[i, :count]
        key = k_blocks[ids].flatten(0, 1).repeat_interleave(share, 1)
        value = v_blocks[ids].flatten(0, 1).repeat_interleave(share, 1)
        scores = torch.einsum("nhd,lhd->hnl", query[start:end].float(), key.float()) * scale
        last = length - n + torch.arange(n)[:, None]
        hidden = (torch.arange(len(key)) > last) & (n > 1)
        weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
        out[start:end] = torch.einsum("hnl,lhd->nhd", weights, value.float())
    return out
