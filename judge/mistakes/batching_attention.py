"""Owns the known mistakes of `batching.varlen-attention`: each is wrong in one way."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from judge.mistakes import attention, paged_attention
from judge.mistakes.paged_attention import gather
from mini_engine.compute.attention_single import paged_attention as paged
from mini_engine.compute.attention_varlen import varlen_attention

Varlen = Callable[..., Tensor]
Args = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, float]


def each(one: Callable[..., Tensor]) -> Varlen:
    """Every request by itself, with a mistake in the attention of one."""

    def varlen(*args: *Args) -> Tensor:
        query, k, v, starts, lens, tables, scale = args
        out = torch.empty(query.shape, dtype=query.dtype)
        for i, length in enumerate(lens.tolist()):
            rows = slice(int(starts[i]), int(starts[i + 1]))
            out[rows] = one(query[rows], k, v, tables[i].tolist(), length, scale)
        return out

    return varlen


no_mask = each(paged_attention.no_mask)
upper_left = each(paged_attention.upper_left)
upper_left_always = each(paged_attention.upper_left_always)
heads_in_turn = each(paged_attention.heads_in_turn)
own_scale = each(paged_attention.own_scale)
no_scale = each(paged_attention.no_scale)
whole_blocks = each(paged_attention.whole_blocks)
whole_rows = each(paged_attention.whole_blocks_late)
full_blocks_only = each(paged_attention.full_blocks_only)
no_table = each(paged_attention.no_table)
takes_short_tables = each(paged_attention.takes_short_tables)
masked_with_zero = each(paged_attention.over(attention.masked_with_zero))
takes_more_rows = each(paged_attention.over(attention.takes_more_queries))


def all_keys(*args: *Args) -> tuple[Tensor, Tensor]:
    """Keys and values of all requests, one behind the other; refuses what the contract refuses."""
    _, k, v, _, lens, tables, _ = args
    varlen_attention(*args)
    pairs = [(tables[i].tolist(), length) for i, length in enumerate(lens.tolist())]
    keys, values = (torch.cat([gather(x, *pair) for pair in pairs]) for x in (k, v))
    return keys, values


def across(*args: *Args) -> Tensor:
    """A row sees the keys of the requests before its own, and its own up to itself."""
    query, scale = args[0], args[-1]
    starts, lens = args[3].tolist(), args[4].tolist()
    keys, values = all_keys(*args)
    hidden = torch.ones(len(query), len(keys), dtype=torch.bool)
    before = 0
    for i, length in enumerate(lens):
        for row in range(starts[i], starts[i + 1]):
            hidden[row, : before + length - (starts[i + 1] - row) + 1] = False
        before += length
    scores = attention.weights_of(query, keys, scale)
    return attention.combine(scores.masked_fill(hidden, -torch.inf).softmax(-1), values, query)


def by_position(*args: *Args) -> Tensor:
    """A row sees the keys of all requests at positions up to its own."""
    query, scale = args[0], args[-1]
    starts, lens = args[3].tolist(), args[4].tolist()
    keys, values = all_keys(*args)
    rows = torch.cat([torch.arange(lens[i] - b + a, lens[i]) for i, (a, b) in spans(starts)])
    hidden = torch.cat([torch.arange(length) for length in lens]) > rows[:, None]
    scores = attention.weights_of(query, keys, scale)
    return attention.combine(scores.masked_fill(hidden, -torch.inf).softmax(-1), values, query)


def spans(starts: list[int]) -> Iterable[tuple[int, tuple[int, int]]]:
    """Each request with its first row and the one behind its last."""
    return enumerate(itertools.pairwise(starts))


def masked(offset: int, *, keep_first: bool = False, prompts_only: bool = False) -> Varlen:
    """The mask of each request shifted by `offset` positions; with `prompts_only`, where it has
    more rows than one; with `keep_first`, its first position stays visible."""

    def varlen(*args: *Args) -> Tensor:
        query, k, v, _, lens, tables, scale = args
        out = varlen_attention(*args)
        for i, (start, end) in spans(args[3].tolist()):
            if prompts_only and end - start == 1:
                continue
            length = int(lens[i])
            key, value = (gather(x, tables[i].tolist(), length) for x in (k, v))
            hidden = attention.hidden(end - start, length, length - (end - start) + offset)
            if keep_first:
                hidden[:, 0] = False
            scores = attention.weights_of(query[start:end], key, scale)
            weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
            out[start:end] = attention.combine(weights, value, query)
        return out

    return varlen


sees_the_next = masked(1)
not_itself = masked(-1)
not_itself_in_prompts = masked(-1, prompts_only=True)
not_itself_but_the_first = masked(-1, keep_first=True)


def first_rows(*args: *Args) -> Tensor:
    """As many rows as the request has, but from the start of the query."""
    query, k, v, _, lens, tables, scale = args
    out = varlen_attention(*args)
    for i, (start, end) in spans(args[3].tolist()):
        rows = query[: end - start]
        out[start:end] = paged(rows, k, v, tables[i].tolist(), int(lens[i]), scale)
    return out


def whole_blocks_for_one(*args: *Args) -> Tensor:
    """Only where a request has one row: the mask cuts the others."""
    out, wrong = varlen_attention(*args), whole_blocks(*args)
    for _, (start, end) in spans(args[3].tolist()):
        if end - start == 1:
            out[start] = wrong[start]
    return out


def all_to_all(*args: *Args) -> Tensor:
    keys, values = all_keys(*args)
    scores = attention.weights_of(args[0], keys, args[-1])
    return attention.combine(scores.softmax(-1), values, args[0])


def chunk_only(*args: *Args) -> Tensor:
    query, k, v, starts, lens, tables, scale = args
    out = varlen_attention(*args)
    for i, length in enumerate(lens.tolist()):
        rows = slice(int(starts[i]), int(starts[i + 1]))
        count = rows.stop - rows.start
        key, value = (gather(x, tables[i].tolist(), length)[length - count :] for x in (k, v))
        scores = attention.weights_of(query[rows], key, scale, 0)
        out[rows] = attention.combine(scores.softmax(-1), value, query)
    return out


def longest_for_all(*args: *Args) -> Tensor:
    """Also moves the rows of the shorter requests to the end of that length."""
    query, k, v, starts, lens, tables, scale = args
    varlen_attention(*args)
    longest = torch.full_like(lens, int(lens.max()))
    return varlen_attention(query, k, v, starts, longest, tables, scale)


def first_table(*args: *Args) -> Tensor:
    """With as many keys as the request has; the first one's table may be too short for that."""
    query, k, v, starts, lens, tables, scale = args
    varlen_attention(*args)
    return varlen_attention(query, k, v, starts, lens, tables[:1].expand(tables.shape), scale)


def without_new(*args: *Args) -> Tensor:
    varlen_attention(*args)  # refuses what the contract refuses
    return each(paged_attention.without_new)(*args)


def last_left_out(*args: *Args) -> Tensor:
    out = varlen_attention(*args)
    out[int(args[3][-2]) :] = 0
    return out


def float32_result(*args: *Args) -> Tensor:
    query, k, v, starts, lens, tables, scale = args
    return varlen_attention(query.float(), k.float(), v.float(), starts, lens, tables, scale)
