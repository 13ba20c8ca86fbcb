"""Owns the schedules of both sides side by side, as plain text around one step."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Sequence
from typing import Any

from judge.api import Schedules
from judge.compare import show
from mini_engine.trace import StepRecord

BLANK = dataclasses.asdict(StepRecord(step=0))
BEFORE, AFTER = 2, 1
WIDTH = 42  # of a column
SHOWN = ("scheduled", "computed", "cached", "preempted", "finished", "free_blocks")
SAME = "the same"
LEGEND = "r0 8+4: of request-0, 8 tokens were computed before the step and 4 in it"


def side_by_side(
    expected: Sequence[Any], got: Sequence[Any], step: int, *, stopped: bool = False
) -> Schedules:
    """Both traces with their table. Raises what a trace of an impossible form leads to."""
    lines = schedule_table(expected, got, step, stopped=stopped)
    return Schedules(expected, got, step, lines, stopped)


def schedule_table(
    expected: Sequence[Any], got: Sequence[Any], step: int, *, stopped: bool = False
) -> tuple[str, ...]:
    """Lines: the steps around `step`, expected and yours; "!" where they differ."""
    ours, theirs = ({r["step"]: r for r in trace} for trace in (expected, got))
    last = max(theirs, default=-1)
    rows = [("", "step", "expected", "yours")]
    for number in range(max(step - BEFORE, 0), step + AFTER + 1):
        mine, yours = ours.get(number), theirs.get(number)
        if mine is None and yours is None:
            continue
        ended = "stopped by the error" if stopped and number == last + 1 else "no such step"
        if stopped and number > last + 1:
            ended = ""
        want = _text(mine) if mine else "no such step"
        have = _text(yours) if yours else ended
        alike = mine is not None and yours is not None and not differences(mine, yours)
        mark = ">" if number == step else ""
        mark += "" if alike else "!"
        rows.append((mark, str(number), want, SAME if alike else have))
    if len(rows) == 1:
        return ()
    lines = [f"schedules around step {step} ({LEGEND})"]
    for row in rows:
        lines += _wrapped(*row)
    return tuple(lines)


def records(trace: Sequence[Any]) -> list[StepRecord]:
    """A trace as records. Raises ValueError if a field holds what no step record holds."""
    made = []
    for fields in trace:
        if not isinstance(fields, dict) or fields.keys() != BLANK.keys():
            raise ValueError(f"no step record: {show(fields)}")
        for name, value in fields.items():
            filled = isinstance(BLANK[name], (list, dict))
            if filled and (type(value) is not type(BLANK[name]) or not _all_text(value)):
                raise ValueError(f"step {show(fields['step'])}: {name} is {show(value)}")
        made.append(StepRecord(**fields))
    return made


def _all_text(names: Any) -> bool:
    return all(type(name) is str for name in names)


def differences(mine: Any, yours: Any) -> list[str]:
    """The fields in which two records of one step differ."""
    return [name for name in SHOWN if mine[name] != yours[name]]


def first_difference(expected: Sequence[Any], got: Sequence[Any]) -> int | None:
    """The first step that differs in what the table shows, None if the traces agree."""
    for mine, yours in zip(expected, got, strict=False):
        if differences(mine, yours):
            return int(mine["step"])
    if len(expected) != len(got):
        return min(len(expected), len(got))
    return None


def short(request_id: str) -> str:
    """request-3 as r3; other ids stay."""
    head, dash, tail = request_id.partition("-")
    return f"r{tail}" if dash and head == "request" and tail.isdigit() else request_id


def _text(record: Any) -> str:
    pieces = []
    for request_id, count in record["scheduled"].items():
        piece = f"{short(request_id)} {show(record['computed'].get(request_id), 20)}+{count}"
        if record["cached"].get(request_id):
            piece += f" (hit {record['cached'][request_id]})"
        if request_id in record["finished"]:
            piece += " ends"
        pieces.append(piece)
    pieces += [f"{short(request_id)} preempted" for request_id in record["preempted"]]
    return f"{', '.join(pieces) or 'nothing'}; free {show(record['free_blocks'], 20)}"


def _wrapped(mark: str, number: str, want: str, have: str) -> list[str]:
    left, right = (textwrap.wrap(text, WIDTH) or [""] for text in (want, have))
    lines = []
    for at in range(max(len(left), len(right))):
        first, second = (part[at] if at < len(part) else "" for part in (left, right))
        head = f"{mark:<2} {number:>4}" if at == 0 else " " * 7
        lines.append(f"{head}  {first:<{WIDTH}}  {second}".rstrip())
    return lines
