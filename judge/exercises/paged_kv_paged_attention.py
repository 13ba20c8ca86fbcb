"""Owns the checks, hints and known mistakes of `paged-kv.paged-attention`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from judge import attention_cases, compare, tensor_compare
from judge.api import Case, Check, Details, Difference, Mistake
from judge.attention_cases import draw
from judge.tensor_checks import smollm2_check, tiny_check
from judge.wire import Array

CALL = "judge.tensor_calls:call"
WHOLE_BLOCKS = "the whole last block is read, not only its tokens up to seq_len"
NAMES = ("query", "k_blocks", "v_blocks", "block_table", "seq_len", "scale")
POISON = 1e4  # finite: masked attention multiplies unwritten values by zero


def paged(
    rng: random.Random,
    label: str,
    numbers: Any,
    size: int,
    *,
    poison: float = 0.0,
    spare: int = 0,
    strided: Sequence[str] = (),
) -> Case:
    """Scatter keys and values over blocks in no order; `spare` blocks follow the needed ones."""
    query, key, value, scale = (numbers[name] for name in ("query", "key", "value", "scale"))
    length, kv_heads, width = key.shape
    needed = -(-length // size)
    num_blocks = needed + spare + 3
    table = rng.sample(range(num_blocks), needed + spare)
    caches = []
    for rows in (key, value):
        cache = np.full((num_blocks, size, kv_heads, width), poison, dtype=np.float32)
        for position in range(length):
            cache[table[position // size], position % size] = rows[position]
        caches.append(cache)
    args = [query, *caches, table, length, scale]
    payload = {"function": "paged_attention", "names": list(NAMES), "args": args,
               "strided": list(strided)}  # fmt: skip
    where = f"block_table {table}, seq_len {length}, blocks of {size}"
    return Case(f"paged_attention(query {list(query.shape)}, {where}), {label}", payload)


def averages(rng: random.Random) -> Sequence[Case]:
    """Queries of zeros: the mean of the visible values, which are 0, 1, 2 ..."""
    cases = []
    for n, length, size in ((1, 3, 4), (1, 4, 2), (1, 5, 2), (3, 5, 2)):
        numbers = draw(rng, n, length, width=2)
        numbers["query"] = np.zeros((n, 1, 2), dtype=np.float32)
        numbers["value"] = np.arange(2 * length, dtype=np.float32).reshape(length, 1, 2)
        cases.append(paged(rng, "zeros as queries: the mean of the visible values", numbers, size))
    return cases


def lengths(rng: random.Random) -> Sequence[Case]:
    """One new token, with B - 1, B and B + 1 tokens kept in all, and around two blocks."""
    cases = []
    for size in (4, 16):
        for length in (1, size - 1, size, size + 1, 2 * size, 2 * size + 1):
            cases.append(paged(rng, "one new token", draw(rng, 1, length, 2, 2), size))
    return cases


def chunks(rng: random.Random) -> Sequence[Case]:
    """A whole prompt, and chunks behind kept tokens, ending inside and at the end of a block."""
    cases = []
    for n, length, size in ((5, 5, 4), (8, 8, 4), (3, 10, 4), (4, 8, 4), (6, 7, 2), (2, 33, 16)):
        cases.append(paged(rng, f"{n} new of {length} tokens", draw(rng, n, length, 2, 2), size))
    return cases


def poisoned(rng: random.Random) -> Sequence[Case]:
    """Every slot that is not the request's holds a large number, once positive, once negative."""
    cases = []
    for poison in (POISON, -POISON):
        for n, length, size in ((1, 5, 4), (1, 1, 4), (3, 6, 4), (7, 7, 8)):
            label = f"all other slots hold {poison:g}"
            cases.append(paged(rng, label, draw(rng, n, length, 2, 2), size, poison=poison))
    return cases


def longer_tables(rng: random.Random) -> Sequence[Case]:
    cases = []
    for n, length, size in ((1, 4, 4), (2, 7, 4)):
        spare = rng.randint(1, 3)
        label = f"the table has {spare} more blocks than needed, all slots there hold {POISON:g}"
        numbers = draw(rng, n, length, 2, 2)
        cases.append(paged(rng, label, numbers, size, poison=POISON, spare=spare))
    return cases


def shared_heads(rng: random.Random) -> Sequence[Case]:
    cases = attention_cases.shared_heads(rng, _keep)
    return [paged(rng, case.label, case.payload, 4) for case in cases]


def scales(rng: random.Random) -> Sequence[Case]:
    return [paged(rng, case.label, case.payload, 4) for case in attention_cases.scales(rng, _keep)]


def far_below(rng: random.Random) -> Sequence[Case]:
    made = attention_cases.far_below(rng, _keep)
    return [paged(rng, case.label, case.payload, 4) for case in made]


def mixed(rng: random.Random) -> Sequence[Case]:
    cases = attention_cases.mixed(rng, _keep, 8, (2, 8, 64))
    sizes = [rng.choice([1, 2, 3, 8, 16]) for _ in cases]
    return [
        paged(rng, case.label, case.payload, size, poison=POISON, strided=["query"])
        for case, size in zip(cases, sizes, strict=True)
    ]


def half_precision(rng: random.Random) -> Sequence[Case]:
    cases = [
        paged(rng, case.label, case.payload, 4)
        for case in attention_cases.mixed(rng, _keep, 3, (16, 32))
    ]
    for case in cases:
        args = case.payload["args"]
        case.payload["args"] = [*map(tensor_compare.bfloat16, args[:3]), *args[3:]]
    return cases


def moved(rng: random.Random) -> Sequence[Case]:
    """The same request twice, in other blocks."""
    numbers = draw(rng, 3, 9, 4, 2)
    return [paged(rng, "the same request", numbers, 4, poison=float(i)) for i in range(2)]


def refused(rng: random.Random) -> Sequence[Case]:
    cases = []
    for length, size, kept in ((5, 4, 1), (9, 2, 4), (33, 16, 2)):
        case = paged(rng, "a block too few", draw(rng, 1, length, 2, 1), size)
        table = case.payload["args"][3][:kept]
        case.payload["args"][3] = table
        label = f"paged_attention(block_table {table}, seq_len {length}, blocks of {size})"
        cases.append(Case(f"{label}, a block too few", case.payload))
    numbers = draw(rng, 2, 5, 2, 1)
    case = paged(rng, "more queries than positions", numbers, 4)
    case.payload["args"][4] = 1
    return [*cases, Case("2 queries and seq_len 1", case.payload)]


def _keep(label: str, numbers: Any, **more: Any) -> Case:
    return Case(label, numbers)


def answer(case: Case, expected: Any, got: Any) -> Difference | None:
    """As for every tensor, with a word on poison that came through."""
    found = tensor_compare.against(case, expected, got, tensor_compare.paged_oracle)
    value = got["value"]
    if found is None or not isinstance(value, Array) or value.shape != expected["value"].shape:
        return found
    seen = np.abs(value.numpy())
    if bool((seen > POISON / 100).any()):
        line = "numbers this large stand only in slots that hold none of the request's tokens"
        return Difference((*found.lines, line), found.status, found.frames)
    return found


def refusal(case: Case, expected: Any, got: Any) -> Difference | None:
    return compare.function_answer(case, expected, {"value": got["value"]})


def _check(name: str, title: str, cases: Any, compare_with: Any = answer) -> Check:
    return Check(name, title, CALL, cases, compare_with)


EXERCISE = Details(
    checks=(
        _check("averages", "equal scores give the mean of the visible values", averages),
        _check("lengths", "B - 1, B and B + 1 tokens", lengths),
        _check("chunks", "several new tokens, with kept ones before them", chunks),
        _check("poison", "slots that hold none of its tokens change nothing", poisoned),
        _check("long-table", "a table may be longer than needed", longer_tables),
        _check("shared-heads", "query heads that share a KV head", shared_heads),
        _check("scale", "the scale is the argument's", scales),
        _check("far-below", "scores far below zero", far_below),
        _check("moved", "the same request in other blocks", moved),
        _check("random", "random shapes and tables against float64", mixed),
        _check("bfloat16", "bfloat16 in, bfloat16 out", half_precision),
        _check("refuses", "too few blocks, too many queries: a ValueError", refused, refusal),
        tiny_check("llama", "qwen3"),
        smollm2_check(),
    ),
    hints=(
        "seq_len is 5 and blocks hold 4. Which blocks hold the five keys, and what stands in the "
        "other three slots of the second one? Must anything of it be read?",
        "The block table puts blocks into the order of positions; once their rows stand in that "
        "order and end at seq_len, nothing is paged any more: it is attention over contiguous keys "
        "and values, in which the queries are the last n positions.",
        "how many blocks hold seq_len tokens, rounded up? Fewer in the table: ValueError\n"
        "index k_blocks with these ids: [blocks, block_size, num_kv_heads, head_dim]\n"
        "make one dimension of the first two, and cut it to seq_len rows; the same with v_blocks\n"
        "attend over these as in kv-cache.attention",
    ),
    mistakes=tuple(
        Mistake(name, {"paged_attention": f"judge.mistakes.paged_attention:{function}"})
        for name, function in (
            (WHOLE_BLOCKS, "whole_blocks"),
            (WHOLE_BLOCKS, "whole_blocks_late"),
            ("the block table is not used: blocks are read in their own order", "no_table"),
            ("the block table is read from its end", "table_reversed"),
            ("the last block is left out if it is not full", "full_blocks_only"),
            ("the new tokens themselves are not among the keys", "without_new"),
            ("no causal mask: every query sees every key", "no_mask"),
            ("the mask starts in the upper left corner, not in the lower right", "upper_left"),
            ("the mask starts in the upper left corner, not in the lower right",
             "upper_left_always"),
            ("query heads read the KV heads in turn, not in groups", "heads_in_turn"),
            ("the scale is computed, the argument ignored", "own_scale"),
            ("the scale is left out", "no_scale"),
            ("softmax over each block by itself", "softmax_per_block"),
            ("offsets and blocks change places", "transposed"),
            ("a table of too few blocks goes unnoticed", "takes_short_tables"),
        )
    ),
)  # fmt: skip
