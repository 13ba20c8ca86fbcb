"""Every row by itself: the slots that it sees, then a weighted sum."""

import torch


def varlen_attention(query, k_blocks, v_blocks, query_starts, seq_lens, block_tables, scale):
    size = k_blocks.shape[1]
    heads = torch.arange(query.shape[1]) // (query.shape[1] // k_blocks.shape[2])
    starts, lengths, tables = (x.tolist() for x in (query_starts, seq_lens, block_tables))
    out = torch.empty_like(query)
    for length, first, end, table in zip(lengths, starts[:-1], starts[1:], tables, strict=True):
        if end - first > length or len(table) * size < length:
            raise ValueError(f"{end - first} rows, {length} positions, {len(table)} blocks")
        for row in range(first, end):
            seen = range(length - (end - row) + 1)
            blocks = torch.tensor([table[p // size] for p in seen])
            offsets = torch.tensor([p % size for p in seen])
            key = k_blocks[blocks, offsets][:, heads].float()
            value = v_blocks[blocks, offsets][:, heads].float()
            weights = (scale * (key * query[row].float()).sum(-1)).softmax(0)
            out[row] = (weights[..., None] * value).sum(0)
    return out
