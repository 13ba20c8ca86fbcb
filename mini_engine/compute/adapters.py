"""Owns the adapters that put a plain function into a slot of the engine.

An exercise asks for attention of one request; these call it for each request of a flat batch, so
that the function is judged inside the real engine. They are slow and simple on purpose. Which
function takes which adapter stands in `mini_engine.learner_parts`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from mini_engine.compute.batch import SlotMapping, build_batch
from mini_engine.interfaces import Batch

# (query [n, num_heads, head_dim], key [L, num_kv_heads, head_dim], value, scale) -> query's shape
ContiguousFunction = Callable[[Tensor, Tensor, Tensor, float], Tensor]
# (query, k_blocks, v_blocks, block_table, seq_len, scale) -> query's shape
PagedFunction = Callable[[Tensor, Tensor, Tensor, list[int], int, float], Tensor]


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


def contiguous_attention(function: ContiguousFunction) -> Callable[..., ContiguousAttention]:
    """What the attention slot takes, made of such a function."""
    return lambda config, device: ContiguousAttention(function)


def single_request_attention(function: PagedFunction) -> Callable[..., SingleRequestAttention]:
    """What the attention slot takes, made of such a function."""
    return lambda config, device: SingleRequestAttention(function)


def batch_builder(function: SlotMapping) -> Callable[..., Batch]:
    """What the build_batch slot takes: the reference's, with another slot mapping."""
    return functools.partial(build_batch, slot_mapping=function)
