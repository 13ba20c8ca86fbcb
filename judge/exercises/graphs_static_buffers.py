"""Owns the checks, hints and known mistakes of `graphs.static-buffers`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from judge import compare
from judge.api import Case, Check, Details, Difference, Mistake
from judge.tensor_checks import tiny_check
from judge.wire import Array, Raised

FILL = "judge.graph_calls:fill"
SCRATCH = 90  # a block that no case gives to a request
Step = dict[str, Any]


def step(rng: random.Random, bucket: int, requests: int, width: int, size: int) -> Step:
    """A decode step: `requests` of random lengths, block tables `width` columns wide."""
    lengths = [rng.randint((width - 1) * size + 1, width * size)]  # the longest
    lengths += [rng.randint(1, width * size) for _ in range(requests - 1)]
    rng.shuffle(lengths)
    ids = rng.sample(range(1, SCRATCH), sum(-(-n // size) for n in lengths))
    tables, slots = [], []
    for length in lengths:
        own = [ids.pop() for _ in range(-(-length // size))]
        slots.append(own[-1] * size + (length - 1) % size)
        tables.append(own + [0] * (width - len(own)))
    batch = {
        "token_ids": [rng.randrange(1, 40_000) for _ in lengths],
        "positions": [length - 1 for length in lengths],
        "slot_mapping": slots,
        "query_starts": list(range(requests + 1)),
        "seq_lens": lengths,
        "block_tables": tables,
        "logits_rows": list(range(requests)),
    }
    return {"bucket": bucket, "batch": batch}


def script(most: int, width: int, size: int, buckets: Sequence[int], steps: list[Step]) -> Case:
    fills = [f"{_rows(entry)} in {entry['bucket']}" for entry in steps]
    label = f"StaticBuffers({most}, {width}, {SCRATCH}, {size}, device)"
    label += f"; fills of {', '.join(fills)}" if fills else "; nothing filled"
    args = [most, width, SCRATCH, size]
    return Case(label, {"args": args, "buckets": list(buckets), "steps": steps})


def _rows(entry: Step) -> int:
    return len(entry["batch"]["token_ids"])


def new_buffers(rng: random.Random) -> Sequence[Case]:
    return [script(n, 3, size, [1, n], []) for n, size in ((1, 4), (4, 1), (rng.randint(5, 9), 16))]


def one_step(rng: random.Random) -> Sequence[Case]:
    """A full bucket, full width."""
    return [
        script(n, 3, size, [n], [step(rng, n, n, 3, size)]) for n, size in ((1, 4), (4, 4), (3, 16))
    ]


def padded(rng: random.Random) -> Sequence[Case]:
    """Fewer requests than rows, into new buffers."""
    return [script(4, 3, 4, [2, 4], [step(rng, bucket, n, 3, 4)])
            for bucket, n in ((4, 3), (4, 1), (2, 1))]  # fmt: skip


def same_place(rng: random.Random) -> Sequence[Case]:
    """Full steps one after another: views taken at the start must show each."""
    steps = [step(rng, 3, 3, 2, 4) for _ in range(3)]
    return [script(3, 2, 4, [1, 3], steps)]


def fewer(rng: random.Random) -> Sequence[Case]:
    """A full step, then smaller ones: its rows must not live on as padding."""
    sizes = [(4, 4), (4, 2), (4, 3), (2, 1), (4, 1)]
    return [script(4, 3, 4, [1, 2, 4], [step(rng, bucket, n, 3, 4) for bucket, n in sizes])]


def narrower(rng: random.Random) -> Sequence[Case]:
    """Long requests, then short ones, whose batch has fewer columns."""
    return [script(3, 4, 4, [3], [step(rng, 3, 3, width, 4) for width in (4, 2, 3, 1)])]


def random_steps(rng: random.Random) -> Sequence[Case]:
    cases = []
    for _ in range(4):
        buckets, width, size = [1, 2, 4, 6], rng.randint(1, 4), rng.choice([1, 4])
        steps = []
        for _ in range(8):
            bucket = rng.choice(buckets)
            requests = rng.randint(bucket // 2 + 1, bucket)
            steps.append(step(rng, bucket, requests, rng.randint(1, width), size))
        cases.append(script(6, width, size, buckets, steps))
    return cases


def refused(rng: random.Random) -> Sequence[Case]:
    """Too many requests, too wide a table; the buffers stay as they are and go on."""
    fits = step(rng, 2, 2, 2, 4)
    return [
        script(4, 2, 4, [2, 4], [fits, step(rng, 2, 3, 2, 4), fits]),
        script(4, 2, 4, [2, 4], [fits, step(rng, 2, 2, 3, 4), fits]),
    ]


def same_rows(case: Case, expected: Any, got: Any) -> Difference | None:
    """The first tensor that is wrong after a fill, and what its rows are."""
    if not isinstance(got, list):
        return compare.error_or_wrong(expected, got, (case.label,))
    steps: list[Any] = [None, *case.payload["steps"]]
    for number, (want, entry) in enumerate(zip(expected, steps, strict=False)):
        where = "the new buffers" if entry is None else f"after fill {number}"
        if entry is not None:
            where += f" ({compare.counted(_rows(entry), 'request')} in {entry['bucket']} rows)"
        place = (case.label, f"{where}, in the view taken at the start:")
        if number >= len(got):
            return Difference((*place, "no answer"))
        found = _one(want, got[number], entry, place)
        if found is not None:
            return found
    return None


def _one(want: Any, have: Any, entry: Any, place: tuple[str, ...]) -> Difference | None:
    if "value" in want or "batch" not in have:
        if "batch" in have:
            return Difference(
                (*place, f"expected {want['value'].type_name}, but nothing was raised")
            )
        value = have.get("value")
        if "batch" in want and not isinstance(value, Raised):
            shown = compare.show(value, 80)
            return Difference((*place, f"views must return a Batch, got {shown}"))
        if "batch" in want or not compare.same(want["value"], value):
            right = want.get("value", "no exception")
            return compare.error_or_wrong(right, value, place)
        want, have = want["after"], have["after"]
        if "batch" not in have:
            return Difference((*place, "the view is no Batch"))
    for name, right in want["batch"].items():
        lines = _tensor(name, right, have["batch"].get(name), entry)
        if lines:
            return Difference((*place, *lines))
    if have.get("copied"):
        again = "right, but calling views again gives tensors in other memory: both are copies"
        return Difference((*place, again))
    if have.get("changed"):
        return Difference((*place, f"right, but fill changed the batch's {have['changed'][0]}"))
    return None


def _tensor(name: str, want: Array, have: Any, entry: Any) -> list[str]:
    if not isinstance(have, Array):
        return [f"{name}: expected an int64 tensor, got {compare.show(have, 80)}"]
    problem = compare.array_difference(want, have)
    if problem is None:
        return []
    lines = [f"{name}: {problem[0]}", *problem[1:]]
    if (want.shape, want.dtype) == (have.shape, have.dtype):
        lines.append(f"expected {want.numpy().tolist()}")
        lines.append(f"got      {have.numpy().tolist()}")
        requests = 0 if entry is None else _rows(entry)
        wrong = (want.numpy() != have.numpy()).reshape(len(want.numpy()), -1).any(1)
        row = int(wrong.argmax())
        if name not in ("query_starts", "logits_rows"):
            kind = "a request's" if row < requests else "padding"
            lines.append(f"row {row} is {kind}")
    return lines


def _check(name: str, title: str, cases: Any) -> Check:
    return Check(name, title, FILL, cases, same_rows)


EXERCISE = Details(
    checks=(
        _check("new", "new buffers hold padding only", new_buffers),
        _check("one-step", "a step that fills its bucket", one_step),
        _check("padded", "rows beyond the requests are padding", padded),
        _check("same-place", "views taken once show every later step", same_place),
        _check("fewer", "a smaller step leaves nothing of a larger one", fewer),
        _check("narrower", "columns of longer requests are gone", narrower),
        _check("random", "random steps", random_steps),
        _check("refuses", "what does not fit is a ValueError and changes nothing", refused),
        tiny_check("llama", cuda_graphs=True, max_num_seqs=5),
    ),
    hints=(
        "A graph of 4 rows was captured and the step has 3 requests. What does the fourth row "
        "compute, and where does it write its key and value? And which numbers stand in the "
        "fourth row if the step before had 4 requests?",
        "Everything is made once, at full size: a view is the first rows of it and shares its "
        "memory, and filling writes into it, never under a new name. After every fill, each number "
        "of the first `bucket` rows, in every column, was written by this very fill.",
        "when made: for each name one tensor of 64-bit whole numbers, full of its padding value\n"
        "views: slices of the first rows\n"
        "fill: refuse what does not fit, before anything is written\n"
        "    for each tensor: write the n rows of the batch in place; the rows up to the bucket "
        "get the padding value\n"
        "    the block tables have columns beyond the batch's: these get the scratch block in "
        "the n rows, too",
    ),
    mistakes=tuple(
        Mistake(name, {"StaticBuffers": f"judge.mistakes.graph_buffers:{kind}"})
        for name, kind in (
            ("rows beyond the requests keep what an earlier step left", "StaleRows"),
            ("padding rows keep the slots of an earlier step", "StaleSlots"),
            ("columns behind the batch's keep blocks of longer requests", "StaleColumns"),
            ("fill makes new tensors, which no graph reads", "NewTensors"),
            ("views are copies", "Copies"),
            ("padding rows write to slot 0, which belongs to a request", "SlotZero"),
            ("the slot of padding rows is the block's id, not its first slot", "SlotIsBlock"),
            ("padding rows are 0 tokens long", "LengthZero"),
            ("padding rows read block 0, which belongs to a request", "BlockZero"),
            ("columns behind the batch's are filled with 0", "ColumnsZero"),
            ("new buffers hold zeros instead of padding", "ZerosAtFirst"),
            ("int32 instead of int64", "Int32"),
            ("a step that does not fit is written as far as it goes", "CutsOff"),
        )
    ),
)  # fmt: skip
