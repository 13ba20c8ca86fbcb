"""No loop over requests: every row against every slot of the cache, with one mask."""

import torch


def varlen_attention(query, k_blocks, v_blocks, query_starts, seq_lens, block_tables, scale):
    num_blocks, size, kv_heads, width = k_blocks.shape
    counts = query_starts.diff()
    if int(seq_lens.max()) > size * block_tables.shape[1]:
        raise ValueError("block_tables has too few columns")
    if bool((counts > seq_lens).any()):
        raise ValueError("a request has more rows than positions")
    owner = torch.repeat_interleave(torch.arange(len(seq_lens)), counts)
    position = seq_lens[owner] - query_starts[owner + 1] + torch.arange(len(query))
    places = torch.arange(int(seq_lens.max()))
    slots = block_tables[:, places // size] * size + places % size  # [requests, longest]
    visible = torch.zeros(len(query), num_blocks * size, dtype=torch.bool)
    row, place = (places[None] <= position[:, None]).nonzero(as_tuple=True)
    visible[row, slots[owner[row], place]] = True
    share = query.shape[1] // kv_heads
    key, value = (x.reshape(-1, kv_heads, width).float() for x in (k_blocks, v_blocks))
    grouped = query.float().view(len(query), kv_heads, share, width)
    scores = scale * torch.einsum("nksd,lkd->ksnl", grouped, key)
    weights = scores.masked_fill(~visible, -torch.inf).softmax(-1)
    out = torch.einsum("ksnl,lkd->nksd", weights, value)
    return out.reshape(query.shape).to(query.dtype)
