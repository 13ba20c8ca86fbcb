"""Owns the checks, hints and known mistakes of `graphs.runner`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from judge import compare
from judge.api import Case, Check, Details, Difference, Mistake
from judge.tensor_checks import tiny_check
from judge.wire import Array, Raised

RUN = "judge.graph_runs:run"
NEAR = {"rtol": 1e-4, "atol": 1e-4}  # two bucket sizes may add in another order
Chunk = tuple[int, int, int]  # first block, start, number of tokens
SIZE = 4


def decode(first_block: int, length: int) -> Chunk:
    return first_block, length - 1, 1


def case(rng: random.Random, most: int, steps: list[list[Chunk]], longest: int = 16) -> Case:
    options = {"block_size": SIZE, "max_model_len": longest, "max_num_seqs": most}
    blocks = most * -(-longest // SIZE)
    sizes = ", ".join(str(len(step)) for step in steps)
    label = f"max_num_seqs {most}, max_model_len {longest}"
    label += f"; steps of {sizes} requests" if steps else ""
    payload = {"model_seed": rng.randrange(10**6), "steps": [[list(c) for c in s] for s in steps]}
    return Case(label, {**payload, "options": {**options, "num_blocks": blocks}})


def decodes(rng: random.Random, lengths: Sequence[int], longest: int = 16) -> list[Chunk]:
    """Each request in blocks of its own, in any place of the pool."""
    width = -(-longest // SIZE)
    places = rng.sample(range(len(lengths)), len(lengths))
    return [decode(place * width, n) for place, n in zip(places, lengths, strict=True)]


def made(rng: random.Random) -> Sequence[Case]:
    """Nothing is run: only captures."""
    return [case(rng, most, []) for most in (1, rng.choice([3, 5, 6, 7]), 9)]


def replays(rng: random.Random) -> Sequence[Case]:
    """Every number of requests, in any order, at any length."""
    cases = []
    for most in (3, 6):
        sizes = rng.sample(range(1, most + 1), most)
        steps = [decodes(rng, [rng.randint(1, 16) for _ in range(n)]) for n in sizes]
        cases.append(case(rng, most, steps))
    return cases


def borders(rng: random.Random) -> Sequence[Case]:
    """Lengths around the borders of blocks, and the longest that can be, which fills no block."""
    steps = [[decode(0, n), decode(4, m)] for n, m in ((4, 5), (13, 1), (14, 13), (8, 14))]
    return [case(rng, 2, steps, longest=14)]


def shrinking(rng: random.Random) -> Sequence[Case]:
    """A full step, then fewer requests: padding must harm none."""
    full = decodes(rng, [rng.randint(9, 16) for _ in range(4)])
    fewer = [[decode(first, rng.randint(9, 16)) for first, _, _ in full[:n]] for n in (3, 1, 3)]
    return [case(rng, 4, [full, *fewer])]


def others(rng: random.Random) -> Sequence[Case]:
    """Batches that no graph was captured for, between decodes."""
    good = decodes(rng, [5, 9, 2])
    steps = [
        good,
        [(0, 0, rng.randint(2, 9))],  # a prompt
        [(0, 4, 3), decode(4, 9)],  # a chunk beside a decode
        [*good, decode(12, 4)],  # more than max_num_seqs
        [decode(0, 17)],  # longer than max_model_len
        good,
    ]
    return [case(rng, 3, steps)]


def captures(case: Case, expected: Any, got: Any) -> Difference | None:
    """A graph for each size, from large to small, after a warm-up, in the pool of the first."""
    place = (case.label, "when it was made:")
    found = _was_made(got, place)
    if found is not None:
        return found
    want, have = _captures(expected["made"]), _captures(got["made"])
    sizes, right = [rows for rows, _, _ in have], [rows for rows, _, _ in want]
    if sorted(map(str, sizes)) != sorted(map(str, right)):
        return Difference((*place, f"expected graphs of {sorted(right)} rows, got {sizes}"))
    if any(a < b for a, b in pairwise(sizes)):
        line = f"captured in the order {sizes}; a small graph finds room in what a larger one took"
        return Difference((*place, line))
    for rows, shared, warm in have:
        counted = compare.counted(rows, "row")
        if not warm:
            line = f"the step of {counted} was captured without a warm-up of the same size before"
            return Difference((*place, line))
        if rows != sizes[0] and not shared:
            line = f"the graph of {counted} takes a pool of its own, not that of the first"
            return Difference((*place, line))
    return None


def _captures(events: Any) -> list[tuple[Any, bool, bool]]:
    """(rows, in the pool of the first, warmed up) of every capture."""
    found, warm, inside, shared, rows = [], set(), False, False, None
    for event in events:
        if event[0] == "begin":
            inside, shared, rows = True, event[1], None
        elif event[0] == "end":
            found.append((rows, shared, rows in warm))
            inside = False
        elif event[0] == "forward":
            if inside:
                rows = event[1]
            else:
                warm.add(event[1])
    return found


def _was_made(got: Any, place: tuple[str, ...]) -> Difference | None:
    value = got.get("made") if isinstance(got, dict) else got
    if isinstance(value, Raised):
        return _raised(value, place)
    if not isinstance(value, list):
        return compare.error_or_wrong("a graph runner", value, place)
    return None


def _raised(error: Raised, place: tuple[str, ...]) -> Difference:
    """What was refused, with CUDA's or the emulator's own words."""
    lines = (*place, f"it raised {compare.show(error)}", *compare.about_raised(error))
    return Difference(lines, "error", error.frames)


def answers(case: Case, expected: Any, got: Any) -> Difference | None:
    """Step by step: the graph that was replayed, the hidden states, and the slots written."""
    found = _was_made(got, (case.label, "when it was made:"))
    if found is not None:
        return found
    pairs = zip(expected["steps"], got["steps"], case.payload["steps"], strict=True)
    for number, (want, have, chunks) in enumerate(pairs):
        place = (case.label, f"step {number}: {_described(chunks)}")
        found = _step(want, have, place)
        if found is not None:
            return found
    return None


def _described(chunks: Any) -> str:
    lengths = [start + count for _, start, count in chunks]
    if all(count == 1 for _, _, count in chunks):
        return f"{compare.counted(len(chunks), 'decode')}, now {lengths} tokens long"
    counts = [count for _, _, count in chunks]
    return f"chunks of {counts} tokens"


def _step(want: Any, have: Any, place: tuple[str, ...]) -> Difference | None:
    right, hidden = want["hidden"], have["hidden"]
    if isinstance(hidden, Raised):
        return _raised(hidden, place)
    if have["bucket"] != want["bucket"]:
        line = f"bucket: expected {want['bucket']}, got {compare.show(have['bucket'], 40)}"
        return Difference((*place, line))
    if right is None and (hidden is not None or have["events"]):
        what = compare.show(hidden, 60) if hidden is not None else "None, but a graph was replayed"
        return Difference((*place, f"no graph was captured for it: expected None, got {what}"))
    if have["events"] != want["events"]:
        names = [event[0] for event in have["events"]]
        return Difference((*place, f"expected one replay and nothing else, got {names or 'none'}"))
    if have["touched"] != want["touched"]:
        line = f"expected keys written to slots {want['touched']}, got {have['touched']}"
        return Difference((*place, line))
    if right is None:
        return None
    if not isinstance(hidden, Array):
        return Difference((*place, f"expected hidden states, got {compare.show(hidden, 60)}"))
    problem = compare.array_difference(right, hidden, **NEAR)
    return None if problem is None else Difference((*place, "hidden states:", *problem))


def _check(name: str, title: str, cases: Any, comparison: Any = answers) -> Check:
    return Check(
        name, title, RUN, cases, comparison, needs=("tiny",), limit_s=20.0
    )  # fmt: skip


EXERCISE = Details(
    checks=(
        _check("captures", "a graph for every size, large to small, in one pool", made, captures),
        _check("replays", "decodes are one replay of the smallest graph that holds them", replays),
        _check("borders", "lengths up to max_model_len", borders),
        _check("shrinking", "fewer requests than the step before", shrinking),
        _check("others", "batches without a graph are left to the engine", others),
        tiny_check("llama", cuda_graphs=True, max_num_seqs=5),
    ),
    hints=(
        "What is on the tape, and what is only in the buffers? If a step of 3 requests comes, "
        "which rows of the graph's result belong to them? And what would a graph do with a chunk "
        "of two tokens?",
        "The captured function reads the views of one size and nothing else: not the batch of a "
        "step, no length. So it can be captured while the buffers hold padding only. Everything "
        "that a step brings goes through `fill`, and its result is always in the same memory.",
        "when made: sizes, buffers, attention; the width is max_model_len in blocks, rounded up\n"
        "    for each size, the largest first:\n"
        "        a function that plans attention for the views and calls the model with an attend\n"
        "        that writes to the cache and then attends; call it to warm up\n"
        "        record it in a new graph, with the pool of the first graph; keep its result\n"
        "run: forget the last size; give up unless one token for each, few and narrow enough\n"
        "    fill the buffers of the size, replay, cut the result to the requests",
    ),
    mistakes=tuple(
        Mistake(name, {"GraphRunner": f"judge.mistakes.graph_runner:{kind}"})
        for name, kind in (
            ("nothing is run before capture to warm up", "NoWarmUp"),
            ("sizes are captured from small to large", "SmallFirst"),
            ("every graph has a pool of its own", "OwnPools"),
            ("the largest size is below max_num_seqs", "PowersOfTwo"),
            ("every step runs in the largest graph", "AlwaysLargest"),
            ("the rows of padding are returned, too", "AllRows"),
            ("the buffers are not filled before a replay", "NeverFilled"),
            ("chunks of several tokens are replayed like decodes", "TakesChunks"),
            ("block tables are rounded down: too narrow for the longest requests", "Narrow"),
            ("bucket keeps its number after a batch without a graph", "KeepsBucket"),
            ("the capture looks at a number", "LooksAtLengths"),
            ("the results of all graphs are taken from one", "OneResult"),
        )
    ),
)
