"""Calls the reference's helpers; its tables hold all blocks of a request, and two columns more."""

import numpy as np
import torch

from mini_engine.compute.rows import logits_rows
from mini_engine.compute.slots import slot_mapping
from mini_engine.interfaces import Batch


def build_batch(chunks, block_size):
    if any(chunk.num_tokens < 1 for chunk in chunks):
        raise ValueError("a chunk needs a token")
    slots = [
        slot_mapping(chunk.request.block_table, chunk.start, chunk.num_tokens, block_size)
        for chunk in chunks
    ]
    ends = [chunk.start + chunk.num_tokens for chunk in chunks]
    starts = np.cumsum([0, *(chunk.num_tokens for chunk in chunks)])
    rows = logits_rows(starts.tolist(), ends, [chunk.request.num_tokens for chunk in chunks])
    tables = np.zeros((len(chunks), 2 + max(len(c.request.block_table) for c in chunks)), np.int64)
    for row, chunk in zip(tables, chunks, strict=True):
        row[: len(chunk.request.block_table)] = chunk.request.block_table
    return Batch(
        token_ids=torch.tensor(
            [
                t
                for c, end in zip(chunks, ends, strict=True)
                for t in c.request.token_ids[c.start : end]
            ]
        ),
        positions=torch.cat([torch.arange(c.start, e) for c, e in zip(chunks, ends, strict=True)]),
        slot_mapping=torch.tensor(sum(slots, [])),
        query_starts=torch.from_numpy(starts),
        seq_lens=torch.tensor(ends),
        block_tables=torch.from_numpy(tables),
        logits_rows=torch.tensor(rows, dtype=torch.long),
    )
