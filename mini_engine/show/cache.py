"""Owns the map of the prefix cache: names, holders, order of reuse; replayed from a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mini_engine.show.blocks import HATCH
from mini_engine.show.marks import request_ids
from mini_engine.show.markup import (
    INK,
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

SHOWN = 22  # characters of a block's text
WIDTH = "width:116px;max-width:116px;height:58px;vertical-align:top;overflow-wrap:anywhere;"


@dataclass
class CacheState:
    """Pool and names when a step is over, the requests that ended in it released.

    `free` is the free list, what is reused next first. `content` says for each named block which
    request wrote it, and which of that request's blocks it is.
    """

    num_blocks: int
    free: list[int]
    tables: dict[str, list[int]] = field(default_factory=dict)
    content: dict[int, tuple[str, int]] = field(default_factory=dict)

    def holders(self) -> dict[int, list[str]]:
        """Block id to the requests whose tables hold it; free blocks are left out."""
        held: dict[int, list[str]] = {}
        for request_id, table in self.tables.items():
            for block_id in table:
                held.setdefault(block_id, []).append(request_id)
        return held

    def hold(self, request_id: str, table: Sequence[int], known: int, full: int) -> None:
        """The request's table in this step: its first `known` blocks it had, or hit."""
        for index, block_id in enumerate(table):
            if block_id in self.free:
                self.free.remove(block_id)
            if index >= known:
                self.content.pop(block_id, None)  # handed out again: the old name dies
            if index < full:
                self.content.setdefault(block_id, (request_id, index))
        self.tables[request_id] = list(table)

    def release(self, request_id: str) -> None:
        """Last block first: unnamed to the front of the free list, named to the back."""
        table = self.tables.pop(request_id, [])
        held = self.holders()
        for block_id in reversed(table):
            if block_id not in held:
                self.free.insert(len(self.free) if block_id in self.content else 0, block_id)


def cache_state(records: Sequence[StepRecord], step: int, block_size: int) -> CacheState:
    """Replay a trace from its first step to the end of `step` (a record's number).

    For a trace of one engine with prefix caching, from an empty pool on, in which no step failed.
    Raises ValueError if the trace has no such step.
    """
    steps = [record.step for record in records]
    if step not in steps:
        there = f"{steps[0]} to {steps[-1]}" if steps else "none; the trace is empty"
        raise ValueError(f"the trace has no step {step}; its steps: {there}")
    used = {block_id for table in records[0].block_tables.values() for block_id in table}
    num_blocks = records[0].free_blocks + len(used)
    state = CacheState(num_blocks, list(range(num_blocks)))
    for record in records[: steps.index(step) + 1]:
        for request_id in (*record.aborted, *record.preempted):
            state.release(request_id)
        for request_id, table in record.block_tables.items():
            known = len(state.tables.get(request_id, ()))
            known = record.cached.get(request_id, 0) // block_size or known
            computed = record.computed[request_id] + record.scheduled[request_id]
            state.hold(request_id, table, known, computed // block_size)
        for request_id in record.finished:
            state.release(request_id)
    return state


def cache_map(
    records: Sequence[StepRecord],
    step: int,
    *,
    block_size: int,
    texts: Mapping[str, Sequence[str]],
    per_row: int = 6,
) -> Figure:
    """All blocks with their names when `step` is over, and the free ones in the order of reuse.

    A name is shown as the letter of the request that wrote the block, the block's place in it, and
    its tokens: `texts` are the texts of each request's tokens, prompt and output. Blocks that
    several tables hold are hatched, with their count; free ones say at which place of the free list
    they stand.
    """
    state = cache_state(records, step, block_size)
    short = letters(request_ids(records))
    tints = {r: TINTS[i % len(TINTS)] for i, r in enumerate(short)}
    holders = state.holders()
    turn = {block_id: place for place, block_id in enumerate(state.free, start=1)}
    cells = []
    for block_id in range(state.num_blocks):
        held_by = holders.get(block_id, [])
        name = _name(state, block_id, short, texts, block_size)
        number = tag("small", str(block_id), style="color:#555555")
        who = "".join(escape(short[r]) for r in held_by) or f"free, no. {turn[block_id]}"
        count = f" x{len(held_by)}" if len(held_by) > 1 else ""
        fill, extra = (tints[held_by[0]] if held_by else PAPER), WIDTH
        if len(held_by) > 1:
            extra += f"background:{HATCH.format(fill, PAPER)};"
        elif not held_by and block_id in state.content:
            extra += f"border:2px dashed {INK};"
        cells.append(cell(f"{number} {tag('b', who)}{count}<br/>{name}", fill=fill, extra=extra))
    rows = [cells[at : at + per_row] for at in range(0, len(cells), per_row)]
    sentence = _sentence(state, holders, step)
    order = tag("p", _order(state), style="margin:8px 0 0 0")
    label = f"the {state.num_blocks} blocks and their names after step {step}"
    return figure(grid(rows, label) + order, sentence)


def _name(
    state: CacheState,
    block_id: int,
    short: Mapping[str, str],
    texts: Mapping[str, Sequence[str]],
    block_size: int,
) -> str:
    if block_id not in state.content:
        return "no name"
    request_id, index = state.content[block_id]
    tokens = texts[request_id][index * block_size : (index + 1) * block_size]
    text = " ".join("".join(tokens).split())
    text = text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
    return f"{escape(short[request_id])}{index} {tag('i', escape(text))}"


def _order(state: CacheState) -> str:
    """The free list as a line of text."""
    if not state.free:
        return "No block is free."
    blocks = [f"{b} (named)" if b in state.content else str(b) for b in state.free]
    return f"Free list, reused first: {', '.join(blocks)}."


def _sentence(state: CacheState, holders: Mapping[int, Sequence[str]], step: int) -> str:
    shared = sum(len(held_by) > 1 for held_by in holders.values())
    named = sum(block_id in state.content for block_id in state.free)
    text = (
        f"After step {step}: {len(holders)} of {state.num_blocks} blocks are held"
        f"{f', {shared} of them shared' if shared else ''}; {len(state.free)} are free, "
        f"{named} of these still named"
    )
    return f"{text}."
