"""Owns the adapters that put a plain function into a slot of the engine.

An exercise asks for one function, a slot for more: these add the reference's rest, so that the
function is judged inside the real engine. Attention of one request is called for each request of a
flat batch. They are slow and simple on purpose. Which function takes which adapter stands in
`mini_engine.learner_parts`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mini_engine.compute.batch import build_batch
from mini_engine.compute.cuda_graphs import GraphRunner
from mini_engine.interfaces import Batch, BuildBatch, Chunk

# (query [n, num_heads, head_dim], key [L, num_kv_heads, head_dim], value, scale) -> query's shape
ContiguousFunction = Callable[[Tensor, Tensor, Tensor, float], Tensor]
# (query, k_blocks, v_blocks, block_table, seq_len, scale) -> query's shape
PagedFunction = Callable[[Tensor, Tensor, Tensor, list[int], int, float], Tensor]
# (query, k_blocks, v_blocks, query_starts, seq_lens, block_tables, scale) -> query's shape
VarlenFunction = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, float], Tensor]
SlotMapping = Callable[[Sequence[int], int, int, int], list[int]]  # see compute.slots
LogitsRows = Callable[[Sequence[int], Sequence[int], Sequence[int]], list[int]]  # compute.rows


@dataclass(frozen=True)
class RequestPlan:
    """One request of the batch: its rows, its blocks, its tokens in the cache after this step."""

    rows: slice
    block_table: list[int]
    seq_len: int


def _plan(batch: Batch) -> list[RequestPlan]:
    starts, seq_lens = batch.query_starts.tolist(), batch.seq_lens.tolist()
    tables = batch.block_tables.tolist()
    return [
        RequestPlan(slice(starts[i], starts[i + 1]), tables[i], seq_len)
        for i, seq_len in enumerate(seq_lens)
    ]


def _checked(result: object, query: Tensor) -> Tensor:
    """Raise TypeError or ValueError unless a function gave one output row per query row."""
    if not isinstance(result, Tensor):
        raise TypeError(f"attention must return a Tensor, got {type(result).__name__}")
    if result.shape != query.shape:
        raise ValueError(
            f"attention must return the query's shape {tuple(query.shape)}, "
            f"got {tuple(result.shape)}"
        )
    return result


class ContiguousAttention:
    """interfaces.Attention made of a function over one request's contiguous keys and values."""

    def __init__(self, function: ContiguousFunction) -> None:
        self.function = function

    def plan(self, batch: Batch) -> list[RequestPlan]:
        """The batch, request by request."""
        return _plan(batch)

    def __call__(
        self, query: Tensor, keys: Tensor, values: Tensor, plan: list[RequestPlan]
    ) -> Tensor:
        """Gather each request's keys and values into order, then call the function."""
        block_size, scale = keys.shape[1], query.shape[-1] ** -0.5
        out = torch.empty(query.shape, dtype=query.dtype, device=query.device)
        for part in plan:
            num_blocks = -(-part.seq_len // block_size)
            blocks = torch.tensor(part.block_table[:num_blocks], device=keys.device)
            key = keys[blocks].flatten(0, 1)[: part.seq_len]
            value = values[blocks].flatten(0, 1)[: part.seq_len]
            rows = query[part.rows]
            out[part.rows] = _checked(self.function(rows, key, value, scale), rows)
        return out


class SingleRequestAttention:
    """interfaces.Attention made of a function over one request's blocks and block table."""

    def __init__(self, function: PagedFunction) -> None:
        self.function = function

    def plan(self, batch: Batch) -> list[RequestPlan]:
        """The batch, request by request."""
        return _plan(batch)

    def __call__(
        self, query: Tensor, keys: Tensor, values: Tensor, plan: list[RequestPlan]
    ) -> Tensor:
        """Call the function for each request, with exactly the blocks that hold its tokens."""
        block_size, scale = keys.shape[1], query.shape[-1] ** -0.5
        out = torch.empty(query.shape, dtype=query.dtype, device=query.device)
        for part in plan:
            num_blocks = -(-part.seq_len // block_size)
            table = part.block_table[:num_blocks]
            rows = query[part.rows]
            result = self.function(rows, keys, values, table, part.seq_len, scale)
            out[part.rows] = _checked(result, rows)
        return out


class VarlenAttention:
    """interfaces.Attention made of a function over a whole flat batch."""

    def __init__(self, function: VarlenFunction) -> None:
        self.function = function

    def plan(self, batch: Batch) -> Batch:
        """The batch itself, on the CPU."""
        return batch

    def __call__(self, query: Tensor, keys: Tensor, values: Tensor, plan: Batch) -> Tensor:
        """Call the function once."""
        where = plan.query_starts, plan.seq_lens, plan.block_tables
        result = self.function(query, keys, values, *where, query.shape[-1] ** -0.5)
        return _checked(result, query)


def contiguous_attention(function: ContiguousFunction) -> Callable[..., ContiguousAttention]:
    """What the attention slot takes, made of such a function."""
    return lambda config, device: ContiguousAttention(function)


def single_request_attention(function: PagedFunction) -> Callable[..., SingleRequestAttention]:
    """What the attention slot takes, made of such a function."""
    return lambda config, device: SingleRequestAttention(function)


def varlen_attention(function: VarlenFunction) -> Callable[..., VarlenAttention]:
    """What the attention slot takes, made of such a function."""
    return lambda config, device: VarlenAttention(function)


def with_buffers(buffers: Callable[..., Any]) -> Callable[..., GraphRunner]:
    """What the graph_runner slot takes: the reference's, with other static buffers."""
    return functools.partial(GraphRunner, buffers=buffers)


def batch_builder(function: SlotMapping, below: BuildBatch | None = None) -> BuildBatch:
    """What the build_batch slot takes: `below` or the reference's, with another slot mapping."""

    def build(chunks: Sequence[Chunk], block_size: int) -> Batch:
        slots: list[int] = []
        for chunk in chunks:
            table = chunk.request.block_table
            slots += function(table, chunk.start, chunk.num_tokens, block_size)
        batch = (below or build_batch)(chunks, block_size)
        return dataclasses.replace(batch, slot_mapping=torch.tensor(slots, dtype=torch.int64))

    return build


def row_chooser(function: LogitsRows, below: BuildBatch | None = None) -> BuildBatch:
    """What the build_batch slot takes: `below` or the reference's, with another choice of rows."""

    def build(chunks: Sequence[Chunk], block_size: int) -> Batch:
        batch = (below or build_batch)(chunks, block_size)
        known = [chunk.request.num_tokens for chunk in chunks]
        rows = function(batch.query_starts.tolist(), batch.seq_lens.tolist(), known)
        return dataclasses.replace(batch, logits_rows=torch.tensor(rows, dtype=torch.int64))

    return build
