"""Allocates all tensors first and fills them in slices; samples where the scheduler says so."""

import torch

from mini_engine.interfaces import Batch


def build_batch(chunks, block_size):
    total = sum(max(chunk.num_tokens, 0) for chunk in chunks)
    flat = torch.zeros(3, total, dtype=torch.int64)
    starts, lens = torch.zeros(2, len(chunks) + 1, dtype=torch.int64)
    needed = [-(-(c.start + c.num_tokens) // block_size) for c in chunks]
    tables = torch.zeros(len(chunks), max(needed), dtype=torch.int64)
    rows, row = [], 0
    for i, chunk in enumerate(chunks):
        request, first, n = chunk.request, chunk.start, chunk.num_tokens
        if not 0 < n <= request.num_tokens - first:
            raise ValueError(f"{request.request_id}: {n} of {request.num_tokens} tokens")
        blocks = request.block_table[: needed[i]]
        if len(blocks) < needed[i]:
            raise ValueError(f"{request.request_id}: {needed[i]} blocks are needed")
        tables[i, : needed[i]] = torch.tensor(blocks)
        part = flat[:, row : row + n]
        part[0] = torch.tensor(request.token_ids[first : first + n])
        part[1] = torch.arange(first, first + n)
        part[2] = tables[i, part[1] // block_size] * block_size + part[1] % block_size
        row += n
        starts[i + 1], lens[i] = row, first + n
        if chunk.samples:
            rows.append(row - 1)
    token_ids, positions, slots = (x.clone() for x in flat)
    sampled = torch.empty(len(rows), dtype=torch.int64)
    for place, one in enumerate(rows):
        sampled[place] = one
    return Batch(token_ids, positions, slots, starts, lens[:-1], tables, sampled)
