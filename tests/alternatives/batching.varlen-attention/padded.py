"""Queries and keys of all requests in one rectangle each, one SDPA call, and the rows taken out."""

import torch
import torch.nn.functional as F


def varlen_attention(query, k_blocks, v_blocks, query_starts, seq_lens, block_tables, scale):
    size, kv_heads, width = k_blocks.shape[1:]
    counts, longest = query_starts.diff(), int(seq_lens.max())
    if -(-longest // size) > block_tables.shape[1]:
        raise ValueError(f"{longest} tokens in {block_tables.shape[1]} blocks")
    if (seq_lens - counts).min() < 0:
        raise ValueError("more rows than positions")
    requests, most = len(seq_lens), int(counts.max())
    owner = torch.arange(requests).repeat_interleave(counts)
    place = torch.arange(len(query)) - query_starts[owner]
    rows = query.new_zeros(requests, most, *query.shape[1:])
    rows[owner, place] = query
    share = query.shape[1] // kv_heads
    key, value = (
        x[block_tables].flatten(1, 2)[:, :longest].repeat_interleave(share, 2).transpose(1, 2)
        for x in (k_blocks, v_blocks)
    )
    last = (seq_lens - counts)[:, None] + torch.arange(most)  # [requests, most], its own position
    visible = torch.arange(longest) <= last[..., None].clamp(max=longest)
    visible &= torch.arange(longest) < seq_lens[:, None, None]
    out = F.scaled_dot_product_attention(
        rows.transpose(1, 2), key, value, attn_mask=visible[:, None], scale=scale
    )
    return out.transpose(1, 2)[owner, place]
