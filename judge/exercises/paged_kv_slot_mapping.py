"""Owns the checks, hints and known mistakes of `paged-kv.slot-mapping`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from judge import compare
from judge.api import Case, Check, Details, Difference, Mistake
from judge.tensor_checks import shadow_check, smollm2_check, tiny_check

CALL = "judge.execute:call_function"


def case(table: Sequence[int], start: int, count: int, size: int) -> Case:
    args = [list(table), start, count, size]
    label = f"slot_mapping({args[0]}, start={start}, num_tokens={count}, block_size={size})"
    return Case(label, {"function": "slot_mapping", "args": args})


def table(rng: random.Random, blocks: int) -> list[int]:
    """Ids in no order; the largest is far from the number of blocks."""
    return rng.sample(range(1, 200), blocks)


def by_hand(rng: random.Random) -> Sequence[Case]:
    return [
        case([7, 2], 3, 3, 4), case([7, 2], 0, 4, 4), case([0], 0, 1, 16), case([3], 5, 1, 16),
    ]  # fmt: skip


def lengths(rng: random.Random) -> Sequence[Case]:
    """Whole prompts of B - 1, B and B + 1 tokens, and around two blocks."""
    cases = []
    for size in (4, 16):
        for count in (size - 1, size, size + 1, 2 * size - 1, 2 * size, 2 * size + 1):
            cases.append(case(table(rng, -(-count // size)), 0, count, size))
    return cases


def middle(rng: random.Random) -> Sequence[Case]:
    """Chunks that start in the middle, just before, at and just behind the start of a block."""
    cases = []
    for size in (4, 16):
        for start in (1, size - 1, size, size + 1, 2 * size, rng.randint(2, 3 * size)):
            count = rng.choice([1, 2, size, size + 1, rng.randint(1, 2 * size)])
            blocks = -(-(start + count) // size)
            cases.append(case(table(rng, blocks), start, count, size))
    return cases


def random_cases(rng: random.Random) -> Sequence[Case]:
    cases = []
    for _ in range(30):
        size = rng.choice([1, 2, 3, 8, 16, 64])
        start, count = rng.randint(0, 4 * size), rng.randint(0, 4 * size)
        blocks = max(1, -(-(start + count) // size)) + rng.choice([0, 0, 1, 5])
        cases.append(case(table(rng, blocks), start, count, size))
    return cases


def nothing(rng: random.Random) -> Sequence[Case]:
    return [case([], 0, 0, 4), case([5], 0, 0, 4), case([5, 9], 8, 0, 4)]


def too_short(rng: random.Random) -> Sequence[Case]:
    """One slot beyond the table, and more."""
    cases = [case([], 0, 1, 4), case([6], 4, 1, 4), case([6], 0, 5, 4)]
    for size in (2, 16):
        blocks = rng.randint(1, 4)
        cases.append(case(table(rng, blocks), 0, blocks * size + 1, size))
        cases.append(case(table(rng, blocks), blocks * size - 1, 2, size))
        cases.append(case(table(rng, blocks), blocks * size, 1, size))
    return cases


def senseless(rng: random.Random) -> Sequence[Case]:
    ids = table(rng, 2)
    return [
        case(ids, -1, 2, 4), case(ids, -rng.randint(2, 4), 1, 4), case(ids, 0, -1, 4),
        case(ids, 4, -2, 4), case(ids, 0, 1, 0), case(ids, 0, 1, -4),
        case(ids, -1, 0, 4), case(ids, 0, 0, 0), case(ids, 0, 0, -4),  # no tokens excuse nothing
    ]  # fmt: skip


def slots(case: Case, expected: Any, got: Any) -> Difference | None:
    """The first slot that is wrong, with the arithmetic that leads to the right one."""
    found = compare.function_answer(case, expected, got)
    want, have = expected["value"], got.get("value")
    if found is None or not isinstance(want, list) or not isinstance(have, list):
        return found
    lines = [line for line in found.lines if len(line) <= 240]
    ids, start, _, size = case.payload["args"]
    if len(want) != len(have):
        lines.append(f"number of slots: expected {len(want)}, got {len(have)}")
    for number, slot in enumerate(want):
        if number >= len(have) or not compare.same(slot, have[number]):
            position = start + number
            block, offset = divmod(position, size)
            theirs = compare.show(have[number], 60) if number < len(have) else "nothing"
            lines.append(
                f"first wrong: position {position} lies in block_table[{block}] = {ids[block]}, "
                f"offset {offset}, so slot {slot}; got {theirs}"
            )
            break
    return Difference(tuple(lines), found.status, found.frames)


def _check(name: str, title: str, cases: Any) -> Check:
    return Check(name, title, CALL, cases, slots)


EXERCISE = Details(
    checks=(
        _check("by-hand", "small cases that can be done by hand", by_hand),
        _check("lengths", "prompts of B - 1, B and B + 1 tokens", lengths),
        _check("chunks", "chunks that start in the middle", middle),
        _check("random", "random tables and chunks", random_cases),
        _check("nothing", "no tokens have no slots", nothing),
        _check("too-short", "a table that is too short is a ValueError", too_short),
        _check("senseless", "negative numbers and block sizes below 1 are a ValueError", senseless),
        shadow_check(),
        tiny_check("llama", "qwen3", spare=True),
        smollm2_check(),
    ),
    hints=(
        "Blocks of 4, a table [7, 2]: in which entry of the table does position 5 lie, and how far "
        "from the start of that block? Which slots does block 2 own?",
        "Position and block id are two different things: the position says which *entry* of the "
        "table and which offset, the entry says where that block really lies. Each position is "
        "done on its own; a chunk that starts in the middle of a block is nothing special.",
        "refuse negative numbers, a block size below 1, and a last position behind the table\n"
        "for each position of the chunk:\n"
        "    split it by the block size into a whole number and a rest\n"
        "    look the whole number up in the table; that block's first slot, plus the rest",
    ),
    mistakes=tuple(
        Mistake(name, {"slot_mapping": f"judge.mistakes.slots:{function}"})
        for name, function in (
            ("positions are counted from the chunk, not from the request", "from_chunk"),
            ("the block table is not used: slots equal positions", "no_table"),
            ("the chunk is taken to start at the start of its block", "aligned"),
            ("the first block's neighbours are used instead of the table", "contiguous"),
            ("block id and offset change places", "swapped"),
            ("a table that is too short raises Python's own IndexError", "index_error"),
            ("a table that is exactly full is refused", "refuses_full"),
            ("one slot too many", "one_more"),
            ("the last slot is missing", "one_less"),
            ("a table of too few blocks gives fewer slots", "cut_short"),
            ("negative numbers go unnoticed", "takes_negative"),
            ("the block ids without the offsets", "no_offset"),
            ("a table that is longer than needed is refused", "refuses_longer"),
        )
    ),
)  # fmt: skip
