"""Owns the map of the KV slots: which token of which request lies where in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mini_engine.show.blocks import BlockState, block_state
from mini_engine.show.marks import request_ids
from mini_engine.show.markup import TINTS, Figure, cell, escape, figure, grid, letters, tag
from mini_engine.trace import StepRecord

UNWRITTEN = "#ececec"
CENTRE = "text-align:center;min-width:58px;"


def slot_map(
    records: Sequence[StepRecord],
    step: int,
    *,
    block_size: int,
    texts: Mapping[str, Sequence[str]] | None = None,
) -> Figure:
    """The memory of the pool when a step ends: a row per block, a cell per slot.

    A written slot shows the letter of its request (several: the block is shared), the token's
    position in that request and, from `texts` (request id to the text of each token), the token.
    Raises ValueError if the trace has no such step.
    """
    state = block_state(records, step, block_size)
    short = letters(request_ids(records))
    tints = {request: TINTS[i % len(TINTS)] for i, request in enumerate(short)}
    owners = state.owners()
    heads = ["block", "slots", *(f"offset {offset}" for offset in range(block_size))]
    rows = [[cell(head, head="col", fill="#eeeeee") for head in heads]]
    for block_id in range(state.num_blocks):
        first = block_id * block_size
        row = [cell(tag("b", str(block_id)), head="row"), cell(f"{first}-{first + block_size - 1}")]
        held_by = owners.get(block_id, [])
        for offset in range(block_size):
            position = _position(state, held_by, block_id, offset, block_size)
            if position is None:
                word = "unwritten" if held_by else "free"
                row.append(cell(word, fill=UNWRITTEN, extra=CENTRE + "font-style:italic;"))
                continue
            who = "".join(escape(short[request]) for request in held_by)
            content = tag("b", f"{who}{position}") + _text_of(texts, held_by[0], position)
            row.append(cell(content, fill=tints[held_by[0]], extra=CENTRE))
        rows.append(row)
    sentence = _sentence(state, short, block_size, step)
    return figure(grid(rows, f"the slots of {state.num_blocks} blocks in step {step}"), sentence)


def _position(
    state: BlockState, held_by: Sequence[str], block_id: int, offset: int, block_size: int
) -> int | None:
    """The position of the token in this slot, None if nobody has written it."""
    if not held_by:
        return None
    request = held_by[0]
    position = state.tables[request].index(block_id) * block_size + offset
    return position if position < state.computed[request] else None


def _text_of(texts: Mapping[str, Sequence[str]] | None, request: str, position: int) -> str:
    if texts is None or request not in texts:
        return ""
    return "<br/>" + tag("small", escape(repr(texts[request][position])))


def _sentence(state: BlockState, short: Mapping[str, str], block_size: int, step: int) -> str:
    parts = [
        f"{short[request]} has {state.computed[request]} tokens in blocks "
        f"{', '.join(map(str, table))}"
        for request, table in state.tables.items()
    ]
    text = f"Memory at the end of step {step}, blocks of {block_size}: {'; '.join(parts)}."
    return text if parts else f"Memory at the end of step {step}: nobody holds a block."
