"""Owns the flat batch: the chunks of many requests, packed one after another without padding.

Compare `_prepare_inputs` of vLLM's model runners, which fills the same tensors.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import torch
from torch import Tensor

from mini_engine.compute.rows import logits_rows
from mini_engine.compute.slots import slot_mapping
from mini_engine.interfaces import Batch, Chunk

__all__ = ["build_batch", "logits_rows", "slot_mapping"]


def build_batch(chunks: Sequence[Chunk], block_size: int) -> Batch:
    """The chunks of one step as one flat batch, on the CPU; see interfaces.Batch.

    Costs time in proportion to the tokens of this step and to the blocks of its requests, never to
    the tokens computed before. Raises ValueError, naming the request, for a chunk beyond its tokens
    or its block table.
    """
    token_ids, positions, slots = array("q"), array("q"), array("q")
    query_starts, seq_lens = array("q", [0]), array("q")
    tables = []
    for chunk in chunks:
        request, end = chunk.request, chunk.start + chunk.num_tokens
        if chunk.num_tokens < 1 or end > request.num_tokens:
            raise ValueError(
                f"request {request.request_id!r}: a chunk of {chunk.num_tokens} tokens from "
                f"{chunk.start} on, but it has {request.num_tokens} tokens"
            )
        # `end` counts the tokens of this step too: a request of exactly B tokens has 1 block, and
        # the token about to be sampled has no slot yet. The table may hold no block more than that.
        num_blocks = -(-end // block_size)
        if num_blocks > len(request.block_table):
            raise ValueError(
                f"request {request.request_id!r}: {end} tokens need {num_blocks} blocks of "
                f"{block_size}, its block table has {len(request.block_table)}"
            )
        token_ids.extend(request.token_ids[chunk.start : end])
        positions.extend(range(chunk.start, end))
        slots.extend(slot_mapping(request.block_table, chunk.start, chunk.num_tokens, block_size))
        query_starts.append(len(token_ids))
        seq_lens.append(end)
        tables.append(request.block_table[:num_blocks])
    known = [chunk.request.num_tokens for chunk in chunks]
    return Batch(
        token_ids=_tensor(token_ids),
        positions=_tensor(positions),
        slot_mapping=_tensor(slots),
        query_starts=_tensor(query_starts),
        seq_lens=_tensor(seq_lens),
        block_tables=_rectangle(tables),
        logits_rows=_tensor(array("q", logits_rows(query_starts, seq_lens, known))),
    )


def _tensor(numbers: array[int]) -> Tensor:
    """An int64 tensor over the array's memory; `torch.tensor(list)` takes ten times as long."""
    if not numbers:
        return torch.empty(0, dtype=torch.int64)
    return torch.frombuffer(numbers, dtype=torch.int64)


def _rectangle(tables: Sequence[list[int]]) -> Tensor:
    """The block tables as rows of one tensor, filled up with 0 to the right."""
    width = max((len(table) for table in tables), default=0)
    numbers = array("q")
    for table in tables:
        numbers.extend(table)
        numbers.extend([0] * (width - len(table)))
    return _tensor(numbers).view(len(tables), width)
