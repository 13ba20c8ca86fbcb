"""Owns the picture of two schedules of one workload, side by side around a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mini_engine.show.blocks import HATCH
from mini_engine.show.marks import Kind, Mark, marks
from mini_engine.show.markup import INK, PAPER, Figure, cell, escape, figure, grid, letters, tag
from mini_engine.show.timelines import FILL, LETTER, MEANING
from mini_engine.trace import StepRecord

SAME = "="
FREE = "free blocks"
CENTRE = "text-align:center;white-space:nowrap;"
SHOWN = 3  # differences that the sentence names
Cells = dict[str, list[str]]  # row -> a text for each step


def schedule_diff(
    expected: Sequence[StepRecord],
    got: Sequence[StepRecord],
    step: int,
    *,
    before: int = 2,
    after: int = 1,
    stopped: bool = False,
) -> Figure:
    """What each request did in the steps around `step`, as expected and in the other run.

    Two columns per step; "=" says that the other run did the same, a hatched cell with "!" that it
    did not. `stopped`: the other run ended with an error in the step after its last record.
    Raises ValueError if neither run has a step in that range.
    """
    near = range(step - before, step + after + 1)
    steps = sorted({record.step for record in (*expected, *got) if record.step in near})
    if not steps:
        raise ValueError(f"neither run has a step near {step}")
    ours, theirs = marks(expected), marks(got)
    ids = list(dict.fromkeys((*ours, *theirs)))
    short = letters(ids)
    wanted, found = _cells(expected, ours, ids, steps), _cells(got, theirs, ids, steps)
    rows = [row for row in ids if any((*wanted[row], *found[row]))]
    absent = [number for number in steps if number not in {record.step for record in got}]
    why = "stopped by an error" if stopped else "no such step"
    heads = ["request"]
    for number in steps:
        heads += [f"step {number} expected", "yours"]
    lines = [[cell(escape(text), head="col", fill="#eeeeee") for text in heads]]
    kinds = _kinds((expected, ours), (got, theirs), steps=steps)
    for row in (*rows, FREE):
        name = tag("b", escape(short.get(row, row)))
        if short.get(row, row) != row:
            name += f" {escape(row)}"
        line = [cell(name, head="row", extra="white-space:nowrap;")]
        for number, want, have in zip(steps, wanted[row], found[row], strict=True):
            line.append(_cell(want, kinds.get(want)))
            if number not in absent:
                line.append(_other(want, have, kinds.get(have)))
            else:  # said once, at the top of the first such column
                top = row == rows[0] and number == absent[0]
                line.append(_other("", why) if top else cell(""))
        lines.append(line)
    sentence = _sentence(steps, step, wanted, found, dict.fromkeys(absent, why))
    label = f"schedules around step {step}, expected and yours"
    legend = _legend({kind for kind in kinds.values() if kind})
    return figure(grid(lines, label) + legend, sentence)


def _cells(
    records: Sequence[StepRecord],
    found: Mapping[str, list[Mark | None]],
    rows: Sequence[str],
    steps: Sequence[int],
) -> Cells:
    index = {record.step: i for i, record in enumerate(records)}
    cells: Cells = {}
    for row in rows:
        line = found.get(row)
        cells[row] = [
            _text(line[index[number]]) if line and number in index else "" for number in steps
        ]
    cells[FREE] = [
        str(records[index[number]].free_blocks) if number in index else "" for number in steps
    ]
    return cells


def _text(mark: Mark | None) -> str:
    """P 4 hit 8, ends: the letter of the timeline, tokens, prefix hit."""
    if mark is None:
        return ""
    text = f"{LETTER[mark.kind]} {mark.tokens}" if mark.tokens else LETTER[mark.kind]
    text += f" hit {mark.hit}" if mark.hit else ""
    return text + (" ends" if mark.ends else "")


def _kinds(
    *runs: tuple[Sequence[StepRecord], Mapping[str, list[Mark | None]]], steps: Sequence[int]
) -> dict[str, Kind]:
    """The kind behind each text that is shown."""
    kinds: dict[str, Kind] = {}
    for records, found in runs:
        for line in found.values():
            for record, mark in zip(records, line, strict=True):
                if mark is not None and record.step in steps:
                    kinds[_text(mark)] = mark.kind
    return kinds


def _cell(text: str, kind: Kind | None) -> str:
    return cell(
        escape(text),
        fill=FILL[kind] if kind else PAPER,
        extra="text-align:center;white-space:nowrap;",
    )


def _other(want: str, have: str, kind: Kind | None = None) -> str:
    if want == have:
        return cell(SAME if want else "", extra=CENTRE)
    fill = FILL[kind] if kind else PAPER
    style = f"{CENTRE}border:2px solid {INK};background:{HATCH.format(fill, '#e4e4e4')};"
    return cell(f"{tag('b', '!')} {escape(have) or 'nothing'}", fill=fill, extra=style)


def _legend(kinds: set[Kind]) -> str:
    parts = [f"{tag('b', LETTER[kind])} {MEANING[kind]}" for kind in LETTER if kind in kinds]
    parts += [f"{tag('b', SAME)} the same", f"{tag('b', '!')} differs (hatched)"]
    return tag("p", "; ".join(parts), style=f"color:{INK};margin:6px 0 0 0;font-size:12px")


def _sentence(
    steps: Sequence[int], step: int, wanted: Cells, found: Cells, absent: Mapping[int, str]
) -> str:
    """What differs, in words; the caption and the text of a screen reader."""
    other = [
        f"step {number}, {row}: expected {want or 'nothing'}, yours {have or 'nothing'}"
        for i, number in enumerate(steps)
        for row, want, have in ((row, wanted[row][i], found[row][i]) for row in wanted)
        if want != have and number not in absent
    ] + [f"step {number}, yours: {why}" for number, why in list(absent.items())[:1]]
    span = f"Steps {steps[0]} to {steps[-1]}, around step {step}: "
    if not other:
        return span + "both schedules are the same."
    more = f"; and {len(other) - SHOWN} more" if len(other) > SHOWN else ""
    return span + "; ".join(other[:SHOWN]) + more + "."
