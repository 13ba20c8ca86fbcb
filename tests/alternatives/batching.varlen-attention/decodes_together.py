"""One batched product for all decodes, and the learner's own way for each longer chunk."""

import torch

from mini_engine.compute.attention_single import paged_attention


def varlen_attention(query, k_blocks, v_blocks, query_starts, seq_lens, block_tables, scale):
    size, kv_heads, width = k_blocks.shape[1:]
    counts, out = query_starts.diff(), torch.empty_like(query)
    if int((seq_lens + size - 1).max()) // size > block_tables.shape[1]:
        raise ValueError("block_tables is too narrow")
    for i in (counts > 1).nonzero().flatten().tolist():
        rows = slice(int(query_starts[i]), int(query_starts[i + 1]))
        table, length = block_tables[i].tolist(), int(seq_lens[i])
        out[rows] = paged_attention(query[rows], k_blocks, v_blocks, table, length, scale)
    alone = (counts == 1).nonzero().flatten()
    if len(alone) == 0:
        return out
    if int(seq_lens[alone].min()) < 1:
        raise ValueError("a decode without a position")
    rows, lengths = query_starts[alone], seq_lens[alone]
    longest = int(lengths.max())
    grouped = query[rows].float().view(len(alone), kv_heads, -1, width)
    key, value = (
        x[block_tables[alone]].flatten(1, 2)[:, :longest].float() for x in (k_blocks, v_blocks)
    )
    scores = scale * torch.einsum("rksd,rlkd->rksl", grouped, key)
    scores.masked_fill_(torch.arange(longest) >= lengths[:, None, None, None], -torch.inf)
    mixed = torch.einsum("rksl,rlkd->rksd", scores.softmax(-1), value)
    out[rows] = mixed.reshape(len(alone), *query.shape[1:]).to(query.dtype)
    return out
