# mistake: requests attend to one another: every row sees all keys of the batch
"""All keys behind one another, no mask."""

import torch


def varlen_attention(query, k_blocks, v_blocks, query_starts, seq_lens, block_tables, scale):
    size, kv_heads = k_blocks.shape[1:3]
    share = query.shape[1] // kv_heads
    keys, values, seen, before = [], [], [], 0
    for i in range(len(seq_lens)):
        length, n = int(seq_lens[i]), int(query_starts[i + 1] - query_starts[i])
        count = -(-length // size)
        if count > block_tables.shape[1] or n > length:
            raise ValueError(f"request {i} does not fit")
        ids = block_tables[i, :count]
        keys.append(k_blocks[ids].flatten(0, 1)[:length])
        values.append(v_blocks[ids].flatten(0, 1)[:length])
        seen += range(before + length - n + 1, before + length + 1)
        before += length
    key = torch.cat(keys).repeat_interleave(share, 1).float()
    value = torch.cat(values).repeat_interleave(share, 1).float()
    scores = torch.einsum("nhd,lhd->hnl", query.float(), key) * scale
    weights = scores.softmax(-1)
    return torch.einsum("hnl,lhd->nhd", weights, value).to(query.dtype)
