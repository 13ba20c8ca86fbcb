"""Owns the checks, hints and known mistakes of `batching.varlen-attention`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from judge import compare, tensor_compare
from judge.api import Case, Check, Details, Difference, Mistake
from judge.tensor_checks import smollm2_check, tiny_check
from judge.varlen_cases import Shape, drawn, flat, oracle
from judge.wire import Array

CALL = "judge.tensor_calls:call"
UPPER_LEFT = "the mask starts in the upper left corner, not in the lower right"
NOT_ITSELF = "the mask is one position too short: a row does not see its own"
POISON = 1e4  # finite: masked attention multiplies unwritten values by zero


def averages(rng: random.Random) -> Sequence[Case]:
    """Queries of zeros; the values of each request are whole numbers far from the others'."""
    cases = []
    for shapes, size in (([(1, 3)], 4), ([(2, 2), (1, 3)], 4), ([(1, 5), (2, 3), (1, 1)], 2)):
        requests = drawn(rng, shapes, 1, 1, 2)
        for number, one in enumerate(requests):
            one["query"] = np.zeros_like(one["query"])
            values = np.arange(len(one["value"]) * 2, dtype=np.float32) + 100 * number
            one["value"] = values.reshape(one["value"].shape)
        cases.append(flat(rng, "zeros as queries: the mean of the visible values", requests, size))
    return cases


def some(label: str, batches: Sequence[tuple[Sequence[Shape], int]], **more: Any) -> Any:
    """Cases of these shapes and block sizes."""

    def cases(rng: random.Random) -> Sequence[Case]:
        return [flat(rng, label, drawn(rng, shapes), size, **more) for shapes, size in batches]

    return cases


one_request = some("one request", [([(1, 9)], 4), ([(5, 5)], 4), ([(3, 10)], 4), ([(1, 1)], 16)])
decodes = some(
    "decodes only",
    [([(1, 3), (1, 4), (1, 5)], 4), ([(1, 8), (1, 8)], 4), ([(1, 40), (1, 2), (1, 17)], 16)],
)
prompts = some("whole prompts", [([(3, 3), (5, 5)], 4), ([(4, 4), (4, 4), (9, 9)], 4)])
chunks = some("chunks behind kept tokens", [([(3, 7), (2, 10)], 4), ([(4, 8), (2, 3), (5, 21)], 8)])
mixed = some(
    "decodes, whole prompts and chunks",
    [
        ([(1, 6), (4, 4), (3, 3)], 4),
        ([(1, 9), (4, 4), (1, 30), (2, 13), (5, 21), (1, 1)], 4),
        ([(6, 6), (1, 5), (3, 12), (1, 16)], 16),
    ],
)


def poisoned(rng: random.Random) -> Sequence[Case]:
    """Every slot that is nobody's holds a large number, once positive, once negative."""
    cases = []
    for poison in (POISON, -POISON):
        for shapes, size in (
            ([(1, 5), (1, 2)], 4),
            ([(3, 6), (1, 9), (7, 7)], 4),
            ([(1, 4), (1, 20)], 4),
        ):
            label = f"all slots that are nobody's hold {poison:g}"
            cases.append(flat(rng, label, drawn(rng, shapes), size, poison=poison))
    return cases


def wide_tables(rng: random.Random) -> Sequence[Case]:
    """More columns than any request needs."""
    cases = []
    for shapes in ([(1, 4), (2, 7)], [(1, 3)], [(5, 5), (1, 8), (1, 1)]):
        columns = rng.randint(1, 3)
        label = f"{columns} more columns than needed, all slots that are nobody's hold {POISON:g}"
        requests = drawn(rng, shapes)
        cases.append(flat(rng, label, requests, 4, poison=POISON, more_columns=columns))
    return cases


def shared_blocks(rng: random.Random) -> Sequence[Case]:
    """Requests that begin alike share their first blocks."""
    cases = []
    for shapes, common in (([(1, 9), (1, 11)], 2), ([(12, 12), (3, 7), (1, 10)], 1)):
        requests = drawn(rng, shapes)
        for one in requests[1:]:
            for name in ("key", "value"):
                one[name][: 4 * common] = requests[0][name][: 4 * common]
        label = f"requests share their first {4 * common} positions"
        cases.append(flat(rng, label, requests, 4, shared=common, poison=POISON))
    return cases


def shared_heads(rng: random.Random) -> Sequence[Case]:
    cases = []
    for heads, kv_heads in ((4, 2), (6, 3), (3, 1), (9, 3)):
        requests = drawn(rng, [(1, rng.randint(2, 9)), (3, 3 + rng.randint(0, 5))], heads, kv_heads)
        cases.append(flat(rng, f"{heads} query heads share {kv_heads} KV heads", requests, 4))
    return cases


def scales(rng: random.Random) -> Sequence[Case]:
    shapes = [(1, 5), (3, 6)]
    return [
        flat(rng, f"scale {scale}", drawn(rng, shapes, 2, 1, 16, scale=scale), 4)
        for scale in (1.0, 0.5, 0.03, 0.0)
    ]


def far_below(rng: random.Random) -> Sequence[Case]:
    """All scores lie below -10,000: what is hidden by a large negative number would win."""
    cases = []
    for shapes in ([(1, 5), (4, 4)], [(3, 6), (1, 2), (1, 11)]):
        requests = drawn(rng, shapes, scale=1.0, size=10.0)
        for one in requests:
            one["query"] = abs(one["query"]) + np.float32(36.0)
            one["key"] = -abs(one["key"]) - np.float32(36.0)
        cases.append(flat(rng, "all scores lie below -10,000", requests, 4))
    return cases


def any_shapes(rng: random.Random) -> list[Shape]:
    shapes = []
    for _ in range(rng.randint(1, 7)):
        n = rng.choice([1, 1, rng.randint(2, 6)])
        shapes.append((n, n + rng.choice([0, rng.randint(1, 30)])))
    return shapes


def random_cases(rng: random.Random) -> Sequence[Case]:
    cases = []
    for _ in range(8):
        kv_heads, share = rng.randint(1, 3), rng.randint(1, 3)
        requests = drawn(rng, any_shapes(rng), share * kv_heads, kv_heads, rng.choice((2, 8, 64)))
        size = rng.choice([1, 2, 3, 8, 16])
        cases.append(flat(rng, "random", requests, size, poison=POISON, strided=["query"]))
    return cases


def half_precision(rng: random.Random) -> Sequence[Case]:
    cases = []
    for width in (16, 32):
        case = flat(rng, "bfloat16", drawn(rng, [(1, 7), (3, 5), (4, 4)], 4, 2, width), 4)
        args = case.payload["args"]
        case.payload["args"] = [*map(tensor_compare.bfloat16, args[:3]), *args[3:]]
        cases.append(case)
    return cases


def refused(rng: random.Random) -> Sequence[Case]:
    cases = []
    for shapes, columns in (([(1, 5)], 1), ([(1, 3), (2, 9)], 2), ([(1, 17), (1, 2)], 4)):
        case = flat(rng, "the table of a request is too short", drawn(rng, shapes), 4)
        case.payload["args"][5] = case.payload["args"][5][:, :columns].copy()
        cases.append(Case(f"{case.label}: {columns} columns", case.payload))
    for shapes, wrong in (([(2, 5)], [1]), ([(1, 4), (3, 6)], [4, 2])):
        case = flat(rng, f"seq_lens changed to {wrong}: more rows", drawn(rng, shapes), 4)
        case.payload["args"][4] = np.array(wrong)
        cases.append(case)
    return cases


def answer(case: Case, expected: Any, got: Any) -> Difference | None:
    """As for every tensor, with the request of the first wrong row and a word on poison."""
    found = tensor_compare.against(case, expected, got, oracle)
    value = got["value"]
    if found is None or not isinstance(value, Array) or value.shape != expected["value"].shape:
        return found
    lines = list(found.lines)
    truth, have = oracle(case.payload), value.numpy().astype(np.float64)
    wrong = ~(abs(have - truth.numbers) <= truth.allowed)
    if wrong.any():
        starts, lens = case.payload["args"][3], case.payload["args"][4]
        row = int(np.argwhere(wrong)[0][0])
        request = int(np.searchsorted(starts, row, side="right")) - 1
        position = int(lens[request] - (starts[request + 1] - row))
        lines.append(f"row {row} belongs to request {request} and stands at position {position}: "
                     f"it sees that request's positions 0 to {position}")  # fmt: skip
    if reads_poison(case.payload, have):
        lines.append("numbers this large stand only in slots that hold nobody's tokens")
    return Difference(tuple(lines), found.status, found.frames)


def reads_poison(payload: Any, have: Any) -> bool:
    """Whether a number is far larger than all values of the requests, in a case with poison."""
    values = tensor_compare.exact(payload["args"][2])
    lens, tables = payload["args"][4:6]
    size, limit = values.shape[1], POISON / 100
    visible = max(
        abs(values[tables[number, p // size], p % size]).max()
        for number, length in enumerate(lens)
        for p in range(length)
    )
    return bool(visible < limit < abs(values).max() and (abs(have) > limit).any())


def refusal(case: Case, expected: Any, got: Any) -> Difference | None:
    return compare.function_answer(case, expected, {"value": got["value"]})


def _check(name: str, title: str, cases: Any, compare_with: Any = answer) -> Check:
    return Check(name, title, CALL, cases, compare_with)


EXERCISE = Details(
    checks=(
        _check("averages", "equal scores give the mean of the visible values", averages),
        _check("one-request", "a batch of one request", one_request),
        _check("decodes", "decodes of different lengths", decodes),
        _check("prompts", "whole prompts side by side", prompts),
        _check("chunks", "several tokens behind kept ones, side by side", chunks),
        _check("mixed", "decodes, prompts and chunks in one batch", mixed),
        _check("poison", "slots that hold nobody's tokens change nothing", poisoned),
        _check("wide-tables", "block_tables may be wider than needed", wide_tables),
        _check("shared-blocks", "requests that share blocks", shared_blocks),
        _check("shared-heads", "query heads that share a KV head", shared_heads),
        _check("scale", "the scale is the argument's", scales),
        _check("far-below", "scores far below zero", far_below),
        _check("random", "random batches against float64", random_cases),
        _check("bfloat16", "bfloat16 in, bfloat16 out", half_precision),
        _check("refuses", "a table too short, too many rows: a ValueError", refused, refusal),
        tiny_check("llama", "qwen3"),
        smollm2_check(),
    ),
    hints=(
        "Three requests with 1, 4 and 3 rows. Which rows of the query are those of the second one, "
        "and which keys may its first row see, if it has 10 positions in the cache? What stands in "
        "its row of block_tables behind the third block, with blocks of 4?",
        "The batch falls apart into requests that have nothing to do with each other: query_starts "
        "says which rows are one's own, seq_lens how many keys, and its row of block_tables where "
        "they lie. Taken alone, each is the attention of chapter 02: its rows are the last of its "
        "positions. Whatever the table names behind the last needed block is not to be read.",
        "an empty result of the query's shape\n"
        "for each request:\n"
        "    its rows: from its start up to the next request's start\n"
        "    how many blocks hold its positions, rounded up? Fewer columns than that: ValueError\n"
        "    more rows than positions: ValueError, too\n"
        "    attend for these rows alone, through these blocks, as in paged-kv.paged-attention\n"
        "    put what comes out into the same rows of the result",
    ),
    mistakes=tuple(
        Mistake(name, {"varlen_attention": f"judge.mistakes.batching_attention:{function}"})
        for name, function in (
            ("requests attend to one another: one causal mask for the whole batch", "across"),
            ("requests attend to one another: every row sees all keys of the batch", "all_to_all"),
            ("requests attend to one another: the mask asks for positions only", "by_position"),
            ("no causal mask: every row sees all keys of its request", "no_mask"),
            (UPPER_LEFT, "upper_left"),
            (UPPER_LEFT, "upper_left_always"),
            ("the mask is one position too far: a row sees the next position", "sees_the_next"),
            (NOT_ITSELF, "not_itself"),
            (NOT_ITSELF, "not_itself_in_prompts"),
            (NOT_ITSELF, "not_itself_but_the_first"),
            ("masked scores are 0 instead of minus infinity", "masked_with_zero"),
            ("every request takes the first rows of the query", "first_rows"),
            ("only this step's tokens are seen, not those kept from earlier steps", "chunk_only"),
            ("this step's own tokens are not among the keys", "without_new"),
            ("the length of the longest request is used for all", "longest_for_all"),
            ("the whole last block is read, not only its tokens up to seq_lens", "whole_blocks"),
            ("the whole last block is read where a request has one row", "whole_blocks_for_one"),
            ("the padding of block_tables is read", "whole_rows"),
            ("the last block is left out if it is not full", "full_blocks_only"),
            ("the block tables are not used: blocks are read in their own order", "no_table"),
            ("all requests read the first one's blocks", "first_table"),
            ("the last request is left out", "last_left_out"),
            ("query heads read the KV heads in turn, not in groups", "heads_in_turn"),
            ("the scale is computed, the argument ignored", "own_scale"),
            ("the scale is left out", "no_scale"),
            ("the result is float32 whatever the query's dtype", "float32_result"),
            ("a table of too few blocks goes unnoticed", "takes_short_tables"),
            ("more rows than positions go unnoticed", "takes_more_rows"),
        )
    ),
)  # fmt: skip
