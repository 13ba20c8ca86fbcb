"""Owns the known mistakes of `paged-kv.paged-attention`: each is wrong in the one way its name says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from judge.mistakes import attention
from mini_engine.compute.attention_single import attention_over_contiguous, paged_attention

Table = Sequence[int]
Contiguous = Callable[[Tensor, Tensor, Tensor, float], Tensor]


def gather(blocks: Tensor, table: Table, length: int) -> Tensor:
    """The rows of the first `length` positions; ValueError for a table that is too short."""
    size = blocks.shape[1]
    if -(-length // size) > len(table):
        raise ValueError("the table is too short")
    return blocks[torch.tensor(table[: -(-length // size)])].flatten(0, 1)[:length]


def over(function: Contiguous) -> Callable[..., Tensor]:
    """Paged attention that gathers rightly and attends with `function`."""

    def paged(q: Tensor, k: Tensor, v: Tensor, table: Table, length: int, scale: float) -> Tensor:
        return function(q, gather(k, table, length), gather(v, table, length), scale)

    return paged


no_mask = over(attention.no_mask)
upper_left = over(attention.upper_left)
upper_left_always = over(attention.upper_left_always)
heads_in_turn = over(attention.heads_in_turn)
own_scale = over(attention.own_scale)
no_scale = over(attention.no_scale)


def whole_blocks(
    q: Tensor, k: Tensor, v: Tensor, table: Table, length: int, scale: float
) -> Tensor:
    """The queries then count as the last positions of the whole blocks."""
    gather(k, table, length)
    full = -(-length // k.shape[1]) * k.shape[1]
    if len(q) > length:
        raise ValueError("more queries than keys")
    return attention_over_contiguous(q, gather(k, table, full), gather(v, table, full), scale)


def whole_blocks_late(
    q: Tensor, k: Tensor, v: Tensor, table: Table, length: int, scale: float
) -> Tensor:
    """All blocks of the table, also those behind the needed ones."""
    gather(k, table, length)
    full = len(table) * k.shape[1]
    if len(q) > length:
        raise ValueError("more queries than keys")
    return attention_over_contiguous(q, gather(k, table, full), gather(v, table, full), scale)


def no_table(q: Tensor, k: Tensor, v: Tensor, table: Table, length: int, scale: float) -> Tensor:
    gather(k, table, length)
    return paged_attention(q, k, v, list(range(len(k))), length, scale)


def table_reversed(
    q: Tensor, k: Tensor, v: Tensor, table: Table, length: int, scale: float
) -> Tensor:
    needed = -(-length // k.shape[1])
    return paged_attention(q, k, v, list(table[:needed])[::-1], length, scale)


def full_blocks_only(
    q: Tensor, k: Tensor, v: Tensor, table: Table, length: int, scale: float
) -> Tensor:
    gather(k, table, length)
    return paged_attention(q, k, v, table, length // k.shape[1] * k.shape[1], scale)


def without_new(
    q: Tensor, k: Tensor, v: Tensor, table: Table, length: int, scale: float
) -> Tensor:
    gather(k, table, length)
    return attention.no_mask(q, *(gather(x, table, length - len(q)) for x in (k, v)), scale)


def softmax_per_block(
    q: Tensor, k: Tensor, v: Tensor, table: Table, length: int, scale: float
) -> Tensor:
    """The mean over blocks of attention within each, where every query sees a key of it."""
    gather(k, table, length)
    size, total = k.shape[1], torch.zeros_like(q)
    starts = range(0, length, size)
    for start in starts:
        rows = slice(start, min(start + size, length))
        keys, values = gather(k, table, length)[rows], gather(v, table, length)[rows]
        offset = length - len(q) - start
        weights = attention.weights_of(q, keys, scale, offset).softmax(-1).nan_to_num()
        total += attention.combine(weights, values, q)
    return total


def transposed(q: Tensor, k: Tensor, v: Tensor, table: Table, length: int, scale: float) -> Tensor:
    """Flattened the wrong way round: first offset 0 of all blocks, then offset 1."""
    gather(k, table, length)
    ids = torch.tensor(table[: -(-length // k.shape[1])])
    key, value = (x[ids].transpose(0, 1).flatten(0, 1)[:length] for x in (k, v))
    return attention_over_contiguous(q, key, value, scale)


def takes_short_tables(
    q: Tensor, k: Tensor, v: Tensor, table: Table, length: int, scale: float
) -> Tensor:
    """Attends over what the table holds."""
    if len(q) > length:
        raise ValueError("more queries than keys")
    return paged_attention(q, k, v, table, min(length, len(table) * k.shape[1]), scale)
