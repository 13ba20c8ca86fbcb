"""Owns the cases of attention over a flat batch, and their float64 oracle. No torch."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from judge import attention_cases, tensor_compare
from judge.api import Case
from judge.tensor_compare import Truth, exact
from judge.wire import Array

NAMES = ("query", "k_blocks", "v_blocks", "query_starts", "seq_lens", "block_tables", "scale")

Shape = tuple[int, int]  # rows in this step, positions in the cache after it


def flat(
    rng: random.Random,
    label: str,
    requests: Sequence[Any],
    size: int,
    *,
    poison: float = 0.0,
    more_columns: int = 0,
    shared: int = 0,
    strided: Sequence[str] = (),
) -> Case:
    """One batch: the keys and values of each request scattered over blocks in no order.

    Block 0 is nobody's; the padding of block_tables names it or other requests' blocks. With
    `shared`, that many blocks of the first request are the others' first blocks, too.
    """
    needed = [-(-len(one["key"]) // size) for one in requests]
    _, kv_heads, width = requests[0]["key"].shape
    num_blocks = 1 + sum(needed) + 2
    ids = rng.sample(range(1, num_blocks), num_blocks - 1)
    caches = np.full((2, num_blocks, size, kv_heads, width), poison, dtype=np.float32)
    tables = np.zeros((len(requests), max(needed) + more_columns), dtype=np.int64)
    for number, (one, count) in enumerate(zip(requests, needed, strict=True)):
        own = [ids.pop() for _ in range(count)]
        common = min(shared, count) if number else 0
        own[:common] = tables[0, :common].tolist()
        tables[number, :count] = own
        for cache, rows in zip(caches, (one["key"], one["value"]), strict=True):
            for position in range(common * size, len(rows)):
                cache[own[position // size], position % size] = rows[position]
        if number and rng.random() < 0.5:
            tables[number, count:] = tables[0, 0]
    starts = np.cumsum([0, *(len(one["query"]) for one in requests)])
    lens = np.array([len(one["key"]) for one in requests])
    query = np.concatenate([one["query"] for one in requests])
    args = [query, caches[0], caches[1], starts, lens, tables, requests[0]["scale"]]
    payload = {"function": "varlen_attention", "names": list(NAMES), "args": args,
               "strided": list(strided)}  # fmt: skip
    where = f"query_starts {starts.tolist()}, seq_lens {lens.tolist()}, blocks of {size}"
    return Case(f"varlen_attention(query {list(query.shape)}, {where}), {label}", payload)


def drawn(
    rng: random.Random, shapes: Sequence[Shape], heads: int = 2, kv_heads: int = 2, width: int = 8,
    **more: Any,
) -> list[Any]:  # fmt: skip
    """Random numbers for requests of one model."""
    return [attention_cases.draw(rng, n, k, heads, kv_heads, width, **more) for n, k in shapes]


def oracle(payload: Any) -> Truth:
    """Each request by itself: gathered slot by slot, then attended."""
    query, k_blocks, v_blocks, starts, lens, tables, scale = payload["args"]
    keys, values, rows = exact(k_blocks), exact(v_blocks), exact(query)
    size, parts = keys.shape[1], []
    for number, length in enumerate(lens):
        places = [(int(tables[number, p // size]), p % size) for p in range(length)]
        key = np.stack([keys[place] for place in places])
        value = np.stack([values[place] for place in places])
        own = slice(starts[number], starts[number + 1])
        part = _part(query, rows, own)
        parts.append(tensor_compare.attention_truth(part, key, value, scale))
    numbers = np.concatenate([part.numbers for part in parts])
    allowed = np.concatenate([part.allowed for part in parts])
    return Truth(numbers, allowed, ("row", "head", "number"))


def _part(query: Any, rows: Any, own: slice) -> Any:
    """The rows of one request in the query's own dtype."""
    if isinstance(query, Array):
        return tensor_compare.bfloat16(rows[own].astype(np.float32))
    return query[own]
