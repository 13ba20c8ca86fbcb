# mistake: requests attend to one another: the mask asks for positions only
"""All keys in one row, hidden by position."""

import torch


def varlen_attention(query, k_blocks, v_blocks, query_starts, seq_lens, block_tables, scale):
    size, kv_heads = k_blocks.shape[1:3]
    keys, values, places, rows = [], [], [], []
    for i, length in enumerate(seq_lens.tolist()):
        n, count = int(query_starts[i + 1] - query_starts[i]), -(-length // size)
        if count > block_tables.shape[1] or n > length:
            raise ValueError(f"request {i}: {n} rows, {length} positions, {count} blocks")
        ids = block_tables[i, :count]
        keys.append(k_blocks[ids].flatten(0, 1)[:length])
        values.append(v_blocks[ids].flatten(0, 1)[:length])
        places.append(torch.arange(length))
        rows.append(torch.arange(length - n, length))
    share = query.shape[1] // kv_heads
    key, value = (torch.cat(x).repeat_interleave(share, 1).float() for x in (keys, values))
    hidden = torch.cat(places) > torch.cat(rows)[:, None]
    scores = torch.einsum("nhd,lhd->hnl", query.float(), key) * scale
    weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
    return torch.einsum("hnl,lhd->nhd", weights, value).to(query.dtype)
