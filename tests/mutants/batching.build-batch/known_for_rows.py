# mistake: seq_lens counts all known tokens, also those not computed yet
"""Every chunk looks finished."""

import torch

from mini_engine.interfaces import Batch


def build_batch(chunks, block_size):
    token_ids, positions, slots = [], [], []
    query_starts, seq_lens, tables, rows = [0], [], [], []
    for chunk in chunks:
        request, start = chunk.request, chunk.start
        end = start + chunk.num_tokens
        if chunk.num_tokens < 1 or end > request.num_tokens:
            raise ValueError(f"{request.request_id}: {chunk.num_tokens} tokens from {start} on")
        table = request.block_table[: -(-end // block_size)]
        if len(table) * block_size < end:
            raise ValueError(f"{request.request_id}: {len(table)} blocks for {end} tokens")
        token_ids += request.token_ids[start:end]
        positions += range(start, end)
        slots += [table[p // block_size] * block_size + p % block_size for p in range(start, end)]
        query_starts.append(len(token_ids))
        seq_lens.append(request.num_tokens)
        tables.append(table)
        if seq_lens[-1] == request.num_tokens:
            rows.append(len(token_ids) - 1)
    width = max(len(table) for table in tables)
    padded = [table + [0] * (width - len(table)) for table in tables]
    numbers = (token_ids, positions, slots, query_starts, seq_lens, padded, rows)
    return Batch(*(torch.tensor(n, dtype=torch.int64) for n in numbers))
