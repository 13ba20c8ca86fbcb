"""Owns the comparison of flat batches, as `judge.batch_calls` gives them. No torch."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from judge import compare
from judge.api import Case, Difference
from judge.wire import Array, Raised

FIELDS = (
    "token_ids", "positions", "slot_mapping", "query_starts", "seq_lens", "block_tables",
    "logits_rows",
)  # fmt: skip
PER_TOKEN = FIELDS[:3]
SHOWN_WHOLE = 40  # numbers


def as_read(case: Case, answers: Any) -> Any:
    """What attention reads of block_tables: the needed blocks. Behind them stand 0 or the request's
    own further blocks, and the table may be wider; anything else stays as it is."""
    if not isinstance(answers, list):
        return answers
    size, found = case.payload["block_size"], []
    for step, answer in zip(case.payload["steps"], answers, strict=False):
        fields = answer.get("batch", {})
        if isinstance(fields.get("block_tables"), Array):
            cut = _needed(step, size, fields["block_tables"])
            answer = {**answer, "batch": {**fields, "block_tables": cut}}
        found.append(answer)
    return found


def _needed(step: Sequence[Any], size: int, tables: Array) -> Array:
    numbers = tables.numpy()
    needed = [-(-(one["start"] + one["num_tokens"]) // size) for one in step]
    if tables.dtype != "int64" or numbers.ndim != 2 or len(numbers) != len(step):
        return tables
    if numbers.shape[1] < max(needed):
        return tables
    for row, one, count in zip(numbers, step, needed, strict=True):
        for place in range(count, len(row)):
            own = one["table"][place : place + 1]
            if row[place] == 0 or row[place] in own:
                row[place] = 0
    if numbers[:, max(needed) :].any():
        return tables
    cut = numbers[:, : max(needed)].copy()
    return dataclasses.replace(tables, shape=cut.shape, data=cut.astype("<i8").tobytes())


def same_batch(
    case: Case, expected: Any, got: Any, fields: Sequence[str] = FIELDS
) -> Difference | None:
    """The first tensor that is wrong, and of which token or request."""
    for number, want in enumerate(expected):
        place = (case.label,) if len(expected) == 1 else (case.label, f"batch {number}:")
        if number >= len(got):
            return Difference((*place, "no answer"))
        if "batch" not in want or "batch" not in got[number]:
            found = _other(want, got[number], place)
            if found is not None:
                return found
            continue
        for name in fields:
            lines = _field(name, case, number, want["batch"][name], got[number]["batch"].get(name))
            if lines:
                return Difference((*place, *lines))
        if got[number].get("changed"):
            what = [f"  {line}"[:160] for line in got[number]["changed"][:4]]
            return Difference(
                (*place, "the batch is right, but the call changed a request:", *what)
            )
    return None


def exact_tables(case: Case, expected: Any, got: Any) -> Difference | None:
    """block_tables alone, as they were given: neither wider nor filled up in another way."""
    return same_batch(case, expected, got, ("block_tables",))


def _other(want: Any, got: Any, place: tuple[str, ...]) -> Difference | None:
    """Where one of the two is no batch: an exception, expected or not, or another type."""
    if "batch" in got:
        return Difference((*place, f"expected {want['value'].type_name}, but it returned a Batch"))
    value = got["value"]
    if "batch" not in want:
        if compare.same(want["value"], value):
            return None
        return compare.error_or_wrong(want["value"], value, place)
    if isinstance(value, Raised):
        lines = (*place, f"expected a Batch, but it raised {compare.show(value)}")
        return Difference((*lines, *compare.about_raised(value)), "error", value.frames)
    if value is None:
        hint = "None is what a function without a return gives"
        return Difference((*place, "expected a Batch, got None", hint))
    return Difference((*place, f"expected a Batch, got a value of type {compare.type_name(value)}"))


def _field(name: str, case: Case, number: int, want: Array, have: Any) -> tuple[str, ...]:
    if not isinstance(have, Array):
        return (f"{name}: expected an int64 tensor, got {compare.show(have, 80)}",)
    problem = compare.array_difference(want, have)
    if problem is None:
        return ()
    lines = [f"{name}: {problem[0]}", *problem[1:]]
    if want.dtype == have.dtype and max(_count(want), _count(have)) <= SHOWN_WHOLE:
        lines.append(f"expected {want.numpy().tolist()}")
        lines.append(f"got      {have.numpy().tolist()}")
    if want.shape == have.shape and want.dtype == have.dtype:
        first = int((want.numpy() != have.numpy()).reshape(len(want.numpy()), -1).any(1).argmax())
        lines += _whose(name, case, number, first)
    return tuple(lines)


def _count(array: Array) -> int:
    count = 1
    for size in array.shape:
        count *= size
    return count


def _whose(name: str, case: Case, number: int, row: int) -> list[str]:
    """To whom the first wrong entry belongs."""
    step = case.payload["steps"][number]
    if name in ("seq_lens", "block_tables"):
        return [f"the first wrong one is that of {step[row]['id']}"]
    if name not in PER_TOKEN:
        return []
    for one in step:
        if row < one["num_tokens"]:
            position = one["start"] + row
            line = f"that row is token {row} of the chunk of {one['id']}, at position {position}"
            if name == "slot_mapping":
                size = case.payload["block_size"]
                entry, offset = divmod(position, size)
                line += f": block_table[{entry}] = {one['table'][entry]}, offset {offset}"
            return [line]
        row -= one["num_tokens"]
    return []
