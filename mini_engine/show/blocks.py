"""Owns the map of the KV blocks: who holds which block after a step was scheduled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mini_engine.show.marks import request_ids
from mini_engine.show.markup import (
    LINE,
    PAPER,
    TINTS,
    Figure,
    cell,
    escape,
    figure,
    grid,
    letters,
    tag,
)
from mini_engine.trace import StepRecord

HATCH = "repeating-linear-gradient(45deg,{0} 0,{0} 5px,{1} 5px,{1} 10px)"


@dataclass
class BlockState:
    """The pool as `schedule()` left it in one step.

    `tables` are the block tables of all running requests and `computed` the tokens each has in
    the cache when the step ends. `named` are the full blocks, which a prefix cache can find again.
    """

    num_blocks: int
    tables: dict[str, list[int]] = field(default_factory=dict)
    computed: dict[str, int] = field(default_factory=dict)
    named: set[int] = field(default_factory=set)

    def owners(self) -> dict[int, list[str]]:
        """Block id to the requests whose tables hold it; free blocks are left out."""
        held: dict[int, list[str]] = {}
        for request_id, table in self.tables.items():
            for block_id in table:
                held.setdefault(block_id, []).append(request_id)
        return held


def block_state(records: Sequence[StepRecord], step: int, block_size: int) -> BlockState:
    """Replay a trace up to `step` (a record's number).

    The trace shows the tables of scheduled requests only; one that ran without being scheduled
    keeps the table it had. Raises ValueError if the trace has no such step.
    """
    steps = [record.step for record in records]
    if step not in steps:
        known = f"{steps[0]} to {steps[-1]}" if steps else "none; the trace is empty"
        raise ValueError(f"the trace has no step {step}; its steps: {known}")
    state = BlockState(0)
    for record in records[: steps.index(step) + 1]:
        state.tables = {r: t for r, t in state.tables.items() if r in record.running}
        state.tables |= record.block_tables
        for request_id, table in record.block_tables.items():
            state.computed[request_id] = record.computed[request_id] + record.scheduled[request_id]
            full = state.computed[request_id] // block_size
            state.named |= set(table[:full])
            state.named -= set(table[full:])
        state.num_blocks = record.free_blocks + len(state.owners())
    state.computed = {r: state.computed[r] for r in state.tables}
    return state


def block_map(
    records: Sequence[StepRecord],
    step: int,
    *,
    block_size: int,
    labels: Mapping[str, str] | None = None,
    per_row: int = 8,
    names: bool = True,
) -> Figure:
    """The pool as a grid, and each request's block table below it, as `schedule()` left them.

    A cell holds the block's number, the letters of the requests that hold it (two or more: shared,
    hatched) and how many of its slots are written when the step ends. `names=False` leaves out
    which free blocks can still be found by the prefix cache.
    """
    state = block_state(records, step, block_size)
    short = letters(request_ids(records))
    tints = {r: TINTS[i % len(TINTS)] for i, r in enumerate(short)}
    owners = state.owners()
    cells = []
    for block_id in range(state.num_blocks):
        held_by = owners.get(block_id, [])
        text = tag("b", "".join(escape(short[r]) for r in held_by))
        fill, extra = PAPER, "text-align:center;min-width:46px;height:34px;"
        if held_by:
            fill = tints[held_by[0]]
            text += "<br/>" + _filled(state, held_by[0], block_id, block_size)
        elif names and block_id in state.named:
            text, extra = "named<br/>free", extra + f"border:1px dashed {LINE};"
        else:
            text = "<br/>free"
        if len(held_by) > 1:
            extra += f"background:{HATCH.format(fill, PAPER)};"
        number = tag("small", str(block_id), style="color:#555555")
        cells.append(cell(f"{number} {text}", fill=fill, extra=extra))
    rows = [cells[at : at + per_row] for at in range(0, len(cells), per_row)]
    tables = _tables(state, short, labels, block_size)
    sentence = _sentence(state, owners, step, names)
    return figure(grid(rows, f"the {state.num_blocks} KV blocks in step {step}") + tables, sentence)


def _filled(state: BlockState, request_id: str, block_id: int, block_size: int) -> str:
    """How many slots of a held block are written when the step ends."""
    before = state.tables[request_id].index(block_id) * block_size
    written = max(0, min(block_size, state.computed[request_id] - before))
    return f"{written}/{block_size}"


def _tables(
    state: BlockState,
    short: Mapping[str, str],
    labels: Mapping[str, str] | None,
    block_size: int,
) -> str:
    heads = ("request", "tokens in the cache", "block table")
    rows = [[cell(head, head="col", fill="#eeeeee") for head in heads]]
    for request_id, table in state.tables.items():
        name = tag("b", escape(short[request_id]))
        if labels and request_id in labels:
            name += f" {escape(labels[request_id])}"
        blocks = " ".join(str(block_id) for block_id in table)
        row = [cell(name, head="row"), cell(str(state.computed[request_id])), cell(blocks)]
        rows.append(row)
    return tag("div", grid(rows, "block tables"), style="margin-top:8px")


def _sentence(
    state: BlockState, owners: Mapping[int, Sequence[str]], step: int, names: bool
) -> str:
    shared = sum(len(held_by) > 1 for held_by in owners.values())
    free_named = len(state.named - set(owners)) if names else 0
    text = (
        f"Step {step}: {len(owners)} of {state.num_blocks} blocks are held by "
        f"{len(state.tables)} request{'s' * (len(state.tables) != 1)}, "
        f"{state.num_blocks - len(owners)} are free"
    )
    if shared:
        text += f", {shared} held block{'s are' if shared != 1 else ' is'} shared"
    if free_named:
        text += f", {free_named} of the free ones still named"
    return text + "."
