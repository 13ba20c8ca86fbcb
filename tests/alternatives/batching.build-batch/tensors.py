"""Tensor arithmetic: no loop over tokens."""

import torch

from mini_engine.interfaces import Batch


def build_batch(chunks, block_size):
    for chunk in chunks:
        end, request = chunk.start + chunk.num_tokens, chunk.request
        if chunk.num_tokens <= 0:
            raise ValueError(f"{request.request_id}: an empty chunk")
        if end > len(request.token_ids) or end > block_size * len(request.block_table):
            raise ValueError(f"{request.request_id}: position {end - 1} is out of reach")
    counts = torch.tensor([chunk.num_tokens for chunk in chunks])
    starts = torch.tensor([chunk.start for chunk in chunks])
    ends = starts + counts
    query_starts = torch.cat((counts.new_zeros(1), counts.cumsum(0)))
    owner = torch.repeat_interleave(torch.arange(len(chunks)), counts)
    positions = torch.arange(len(owner)) - query_starts[owner] + starts[owner]
    needed = (ends + block_size - 1) // block_size
    tables = torch.nn.utils.rnn.pad_sequence(
        [torch.tensor(c.request.block_table)[:n] for c, n in zip(chunks, needed, strict=True)],
        batch_first=True,
    )
    slots = tables[owner, positions // block_size] * block_size + positions % block_size
    tokens = [torch.tensor(c.request.token_ids[c.start : c.start + c.num_tokens]) for c in chunks]
    known = torch.tensor([c.request.num_tokens for c in chunks])
    rows = (query_starts[1:] - 1)[ends == known]
    return Batch(torch.cat(tokens), positions, slots, query_starts, ends, tables, rows)
