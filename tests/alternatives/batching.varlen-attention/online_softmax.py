"""Block by block, with a running maximum and a running sum; nothing is gathered."""

import torch


def varlen_attention(query, k_blocks, v_blocks, query_starts, seq_lens, block_tables, scale):
    size, kv_heads = k_blocks.shape[1:3]
    share = query.shape[1] // kv_heads
    results = []
    for number, length in enumerate(seq_lens.tolist()):
        rows = query[query_starts[number] : query_starts[number + 1]].float()
        n = len(rows)
        if n > length or length > size * block_tables.shape[1]:
            raise ValueError(f"request {number}: {n} rows, {length} positions")
        position = torch.arange(length - n, length)[:, None, None]
        best = torch.full((n, rows.shape[1], 1), -torch.inf)
        total, mixed = torch.zeros_like(best), torch.zeros_like(rows)
        for first in range(0, length, size):
            block = block_tables[number, first // size]
            here = min(size, length - first)
            key, value = (
                x[block, :here].repeat_interleave(share, 1).float() for x in (k_blocks, v_blocks)
            )
            scores = scale * torch.einsum("nhd,lhd->nhl", rows, key)
            scores[torch.arange(first, first + here) > position.expand_as(scores)] = -torch.inf
            highest = torch.maximum(best, scores.amax(-1, keepdim=True))
            shrink, weights = (best - highest).exp(), (scores - highest).exp()
            total = total * shrink + weights.sum(-1, keepdim=True)
            mixed = mixed * shrink + torch.einsum("nhl,lhd->nhd", weights, value)
            best = highest
        results.append(mixed / total)
    return torch.cat(results).to(query.dtype)
