"""Owns the picture of a flat batch: its rows, and the slot that each row's key and value go to.

Read from a trace alone, so it shows what `build_batch` made without asking it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mini_engine.show.marks import request_ids
from mini_engine.show.markup import PAPER, TINTS, Figure, cell, escape, figure, grid, letters, tag
from mini_engine.trace import StepRecord

HEAD, UNWRITTEN = "#eeeeee", "#ececec"
HERE = "outline:3px solid #b34700;outline-offset:-3px;font-weight:bold;"  # the row in question
CENTRE = "text-align:center;"


@dataclass(frozen=True)
class Part:
    """The chunk of one request in a step; `first_row` to `first_row + num_rows - 1` are its rows.

    `computed` tokens were in the cache before; `blocks` are those of the request's table.
    """

    letter: str
    tint: str
    first_row: int
    num_rows: int
    computed: int
    blocks: tuple[int, ...]
    sampled: bool

    @property
    def seq_len(self) -> int:
        """Tokens in the cache when the step is done."""
        return self.computed + self.num_rows


@dataclass(frozen=True)
class Row:
    """A row of a flat batch. `step` is its number, so that `step_slider` can walk through rows."""

    step: int
    part: Part
    position: int
    slot: int
    text: str

    @property
    def sampled(self) -> bool:
        """Whether the next token is sampled from this row."""
        return self.part.sampled and self.position == self.part.seq_len - 1


def flat_rows(
    records: Sequence[StepRecord],
    step: int,
    *,
    block_size: int,
    texts: Mapping[str, Sequence[str]] | None = None,
) -> list[Row]:
    """The rows of the batch that `step` computed, in order.

    `texts` maps request ids to the text of each of their tokens. Raises ValueError if the trace has
    no such step, or the step computed nothing.
    """
    record = next((record for record in records if record.step == step), None)
    if record is None:
        raise ValueError(f"there is no step {step} in this trace of {len(records)} steps")
    if not record.scheduled:
        raise ValueError(f"step {step} computed nothing; choose one that scheduled tokens")
    rows: list[Row] = []
    for request_id, part in _parts(records, record):
        for position in range(part.computed, part.seq_len):
            entry, offset = divmod(position, block_size)
            known = (texts or {}).get(request_id, ())
            text = known[position] if position < len(known) else ""
            slot = part.blocks[entry] * block_size + offset
            rows.append(Row(len(rows), part, position, slot, text))
    return rows


def _parts(records: Sequence[StepRecord], record: StepRecord) -> Iterator[tuple[str, Part]]:
    short, first = letters(request_ids(records)), 0
    for request_id, count in record.scheduled.items():
        tint = TINTS[list(short).index(request_id) % len(TINTS)]
        computed, blocks = record.computed[request_id], tuple(record.block_tables[request_id])
        sampled = request_id in record.sampled
        yield request_id, Part(short[request_id], tint, first, count, computed, blocks, sampled)
        first += count


def flat_batch(rows: Sequence[Row], row: int, *, block_size: int) -> Figure:
    """The rows of a step, what the batch knows of each request, and the slots; `row` is marked.

    Raises ValueError if there is no such row.
    """
    if not 0 <= row < len(rows):
        raise ValueError(f"there is no row {row}; the rows are 0 to {len(rows) - 1}")
    parts = list(dict.fromkeys(one.part for one in rows))
    right = _requests(parts, rows[row]) + tag(
        "div", _memory(rows, row, parts, block_size), style="margin-top:10px"
    )
    panes = tag("div", _tokens(rows, row)) + tag("div", right)
    style = f"display:flex;gap:8px;align-items:flex-start;background:{PAPER}"
    return figure(tag("div", panes, style=style), _sentence(rows, row, block_size))


def _tokens(rows: Sequence[Row], row: int) -> str:
    heads = ("row", "token", "", "position", "slot", "sampled")
    lines = [[cell(head, head="col", fill=HEAD) for head in heads]]
    for one in rows:
        extra = HERE if one.step == row else ""
        name = tag("b", f"{escape(one.part.letter)}{one.position}")
        values = [name, _visible(one.text), str(one.position), str(one.slot)]
        line = [cell(str(one.step), head="row", extra=extra)]
        line += [cell(value, fill=one.part.tint, extra=extra) for value in values]
        lines.append([*line, cell("yes" if one.sampled else "", fill=one.part.tint, extra=extra)])
    return grid(lines, "the rows of the flat batch")


def _requests(parts: Sequence[Part], here: Row) -> str:
    heads = ("request", "query_starts", "seq_lens", "block_tables", "logits_rows")
    lines = [[cell(head, head="col", fill=HEAD) for head in heads]]
    for part in parts:
        end = part.first_row + part.num_rows
        values = [str(part.first_row), str(part.seq_len), " ".join(map(str, part.blocks)),
                  str(end - 1) if part.sampled else "none"]  # fmt: skip
        extra = HERE if part == here.part else ""
        name = cell(tag("b", escape(part.letter)), head="row", extra=extra)
        lines.append([name, *(cell(value, fill=part.tint, extra=extra) for value in values)])
    total = cell(str(parts[-1].first_row + parts[-1].num_rows))
    lines.append([cell("(end)", head="row"), total, *[cell("")] * 3])
    return grid(lines, "what the batch knows of each request")


def _memory(rows: Sequence[Row], row: int, parts: Sequence[Part], block_size: int) -> str:
    """The blocks of these requests; what this step writes is in bold, with a star."""
    heads = ["block", *(f"+{offset}" for offset in range(block_size))]
    lines = [[cell(head, head="col", fill=HEAD) for head in heads]]
    new = {one.slot: one for one in rows}
    kept: dict[int, tuple[Part, int]] = {}
    for part in parts:
        for position in range(part.computed):
            entry, offset = divmod(position, block_size)
            kept.setdefault(part.blocks[entry] * block_size + offset, (part, position))
    for block in sorted({block for part in parts for block in part.blocks}):
        line = [cell(f"{block} (slot {block * block_size})", head="row")]
        for slot in range(block * block_size, (block + 1) * block_size):
            if slot in new:
                one = new[slot]
                content = tag("b", f"{escape(one.part.letter)}{one.position}*")
                extra = CENTRE + (HERE if one.step == row else "")
                line.append(cell(content, fill=one.part.tint, extra=extra))
            elif slot in kept:
                part, position = kept[slot]
                text = f"{escape(part.letter)}{position}"
                line.append(cell(text, fill=part.tint, extra=CENTRE))
            else:
                line.append(cell("", fill=UNWRITTEN))
        lines.append(line)
    return grid(lines, "the slots of these requests' blocks; a star: written in this step")


def _visible(text: str) -> str:
    """A token's text in which spaces and line breaks can be seen."""
    return escape(text.replace(" ", "\u00b7").replace("\n", "\u21b5"))


def _sentence(rows: Sequence[Row], row: int, block_size: int) -> str:
    one = rows[row]
    letter, (entry, offset) = one.part.letter, divmod(one.position, block_size)
    block = one.part.blocks[entry]
    text = (
        f"Row {row}, of the rows 0 to {len(rows) - 1}, is token {letter}{one.position}: position "
        f"{one.position} = {entry} * {block_size} + {offset}, entry {entry} of the block table is "
        f"{block}, so its key and value go to slot {block} * {block_size} + {offset} = {one.slot}. "
    )
    if one.position == 0:
        text += f"It attends to itself ({letter}0)."
    else:
        text += f"It attends to {letter}0 to {letter}{one.position}."
    return text + (" The next token is sampled from this row." if one.sampled else "")
