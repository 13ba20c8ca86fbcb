"""Owns the timeline: requests by step, with the tokens each computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mini_engine.show.marks import Kind, Mark, marks
from mini_engine.show.markup import (
    INK,
    PAPER,
    Figure,
    cell,
    escape,
    figure,
    grid,
    letters,
    tag,
)
from mini_engine.trace import StepRecord

LETTER: dict[Kind, str] = {
    "prefill": "P",
    "decode": "D",
    "recompute": "R",
    "preempted": "X",
    "holds": "-",
    "waiting": "w",
    "aborted": "A",
}
FILL: dict[Kind, str] = {
    "prefill": "#cfe3f7",
    "decode": "#fde3b3",
    "recompute": "#f7d3e5",
    "preempted": PAPER,
    "holds": PAPER,
    "waiting": "#ececec",
    "aborted": PAPER,
}
MEANING: dict[Kind, str] = {
    "prefill": "prefill: a chunk of the prompt",
    "decode": "decode: one token computed, the next one sampled",
    "recompute": "recompute: known tokens again, after a preemption",
    "preempted": "preempted: its blocks are taken away",
    "holds": "keeps its blocks, the budget went to others",
    "waiting": "waiting: not admitted, no blocks",
    "aborted": "aborted before this step",
}


def timeline(
    records: Sequence[StepRecord],
    until: int | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    budget: int | None = None,
    collapse: bool = True,
) -> Figure:
    """Requests by step: what each computed, and below how much of the budget the step used.

    `until` is the number of the last step to draw, None for all. `labels` gives requests longer
    names. Equal neighbouring steps share a column unless `collapse` is False. Raises ValueError
    if there is no step to draw.
    """
    records = [record for record in records if until is None or record.step <= until]
    if not records:
        raise ValueError("a timeline needs at least one StepRecord, got none; run the engine first")
    found = marks(records)
    spans = _columns(records, found) if collapse else [(i, i) for i in range(len(records))]
    rows = [[cell("step", head="col", fill="#eeeeee")]]
    rows[0] += [cell(_span(records, span), head="col", fill="#eeeeee") for span in spans]
    short = letters(found)
    for request_id, line in found.items():
        row = [cell(_name(request_id, short, labels), head="row")]
        rows.append(row + [_mark_cell(line[first], last - first + 1) for first, last in spans])
    row = [cell(f"tokens of budget {budget}" if budget else "tokens in the step", head="row")]
    rows.append(row + [_total_cell(records[first].total, budget) for first, _ in spans])
    kinds = {mark.kind for line in found.values() for mark in line if mark}
    content = grid(rows, "requests by step") + _legend(kinds)
    return figure(content, _sentence(records, found))


def _columns(
    records: Sequence[StepRecord], found: Mapping[str, list[Mark | None]]
) -> list[tuple[int, int]]:
    """First and last index of each run of steps in which every request does the same."""
    spans: list[tuple[int, int]] = []
    for index in range(len(records)):
        column = [line[index] for line in found.values()]
        calm = not any(mark and (mark.ends or mark.hit) for mark in column)
        if spans and calm and column == [line[spans[-1][0]] for line in found.values()]:
            spans[-1] = (spans[-1][0], index)
        else:
            spans.append((index, index))
    return spans


def _span(records: Sequence[StepRecord], span: tuple[int, int]) -> str:
    first, last = records[span[0]].step, records[span[1]].step
    return str(first) if first == last else f"{first} to {last}"


def _name(request_id: str, short: Mapping[str, str], labels: Mapping[str, str] | None) -> str:
    label = (labels or {}).get(request_id, request_id if request_id != short[request_id] else "")
    return tag("b", escape(short[request_id])) + (f" {escape(label)}" if label else "")


def _mark_cell(mark: Mark | None, steps: int) -> str:
    if mark is None:
        return cell("")
    text = f"{LETTER[mark.kind]} {mark.tokens}" if mark.tokens else LETTER[mark.kind]
    if steps > 1 and mark.tokens:
        text += " each"
    for more in (f"hit {mark.hit}" if mark.hit else "", mark.ends and f"ends: {mark.ends}"):
        if more:
            text += "<br/>" + escape(more)
    return cell(text, fill=FILL[mark.kind], extra="text-align:center;white-space:nowrap;")


def _total_cell(total: int, budget: int | None) -> str:
    if not budget:
        return cell(str(total), extra="text-align:center;")
    share = min(100, round(100 * total / budget))
    bar = tag("div", "", style=f"background:{INK};height:5px;width:{share}%")
    return cell(f"{total}{bar}", extra="text-align:center;")


def _legend(kinds: set[Kind]) -> str:
    lines = [f"{tag('b', LETTER[kind])} {MEANING[kind]}" for kind in LETTER if kind in kinds]
    return tag("p", "; ".join(lines), style=f"color:{INK};margin:6px 0 0 0;font-size:12px")


def _sentence(records: Sequence[StepRecord], found: Mapping[str, list[Mark | None]]) -> str:
    computed = sum(record.total for record in records)
    preempted = sum(len(record.preempted) for record in records)
    text = (
        f"{len(found)} request{'s' * (len(found) != 1)} in {len(records)} "
        f"step{'s' * (len(records) != 1)}: {computed} tokens computed"
    )
    if preempted:
        text += f", {preempted} preemption{'s' * (preempted != 1)}"
    return text + "."
