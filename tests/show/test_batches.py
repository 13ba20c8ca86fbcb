"""The picture of a flat batch shows what `build_batch` makes of the same step."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from mini_engine.show.batches import Row, flat_batch, flat_rows
from mini_engine.trace import StepRecord
from tests.show.traces import chunked, preempting, sharing

TRACES = {"chunked": (chunked, 4), "preempting": (preempting, 4), "sharing": (sharing, 16)}


def tables(html: str) -> list[list[list[str]]]:
    """Every table as rows of the text of its cells."""
    found = ElementTree.fromstring(html).iter("table")
    return [[["".join(c.itertext()) for c in row] for row in t.iter("tr")] for t in found]


@pytest.mark.parametrize("name", TRACES)
def test_rows_are_those_of_the_flat_batch(name: str) -> None:
    torch = pytest.importorskip("torch")
    from mini_engine.compute.batch import build_batch
    from mini_engine.control.request import Request
    from mini_engine.interfaces import Chunk

    make, block_size = TRACES[name]
    records = make()
    for record in records:
        chunks = []
        for request_id, count in record.scheduled.items():
            start = record.computed[request_id]
            samples = request_id in record.sampled
            request = Request(request_id, [0] * (start + count + (not samples)))
            request.block_table = list(record.block_tables[request_id])
            chunks.append(Chunk(request, start, count, samples))
        if not chunks:
            continue
        batch = build_batch(chunks, block_size)
        rows = flat_rows(records, record.step, block_size=block_size)
        assert [row.step for row in rows] == list(range(len(batch.token_ids)))
        assert [row.position for row in rows] == batch.positions.tolist()
        assert [row.slot for row in rows] == batch.slot_mapping.tolist()
        assert [row.step for row in rows if row.sampled] == batch.logits_rows.tolist()
        requests = tables(flat_batch(rows, 0, block_size=block_size).html)[1][1:]
        assert [int(line[1]) for line in requests] == batch.query_starts.tolist()
        assert [int(line[2]) for line in requests[:-1]] == batch.seq_lens.tolist()
        for line, blocks in zip(requests, batch.block_tables.tolist(), strict=False):
            shown = [int(block) for block in line[3].split()]
            assert shown == blocks[: len(shown)]
        sampled = [line[4] for line in requests[:-1] if line[4] != "none"]
        assert [int(row) for row in sampled] == batch.logits_rows.tolist()
    assert torch is not None


def middle_step() -> tuple[list[StepRecord], list[Row]]:
    """Step 1 of `chunked`: two decodes and the first 4 tokens of a prompt of 10."""
    records = chunked()
    texts = {"c": [f"<{n}>" for n in range(10)]}
    return records, flat_rows(records, 1, block_size=4, texts=texts)


def test_the_picture_of_a_mixed_step() -> None:
    _, rows = middle_step()
    figure = flat_batch(rows, 3, block_size=4)
    tokens, requests, memory = tables(figure.html)
    assert [line[1] for line in tokens[1:]] == ["a2", "b2", "c0", "c1", "c2", "c3"]
    assert tokens[4][2] == "<1>"
    assert [line[-1] for line in tokens[1:]] == ["yes", "yes", "", "", "", ""]
    assert [line[-1] for line in requests[1:]] == ["0", "1", "none", ""]
    cells = {text for line in memory[1:] for text in line[1:]}
    assert {"a0", "a1", "a2*", "b2*", "c0*", "c3*"} <= cells
    assert "c1: position 1 = 0 * 4 + 1" in figure.sentence
    assert "attends to c0 to c1." in figure.sentence


def test_exactly_the_row_and_its_slot_are_marked() -> None:
    _, rows = middle_step()
    for row in rows:
        tokens, requests, memory = ElementTree.fromstring(
            flat_batch(rows, row.step, block_size=4).html
        ).iter("table")
        marked = [
            [line for line in table.iter("tr") if "outline" in "".join(map(style, line))]
            for table in (tokens, requests, memory)
        ]
        assert [len(lines) for lines in marked] == [1, 1, 1]
        assert "".join(marked[0][0][0].itertext()) == str(row.step)
        (cell,) = [c for c in marked[2][0] if "outline" in style(c)]
        assert "".join(cell.itertext()) == f"{row.part.letter}{row.position}*"
        (number,) = re.findall(r"slot (\d+)", "".join(marked[2][0][0].itertext()))
        assert int(number) + list(marked[2][0]).index(cell) - 1 == row.slot


def style(element: ElementTree.Element) -> str:
    return element.get("style", "")


def test_the_text_of_a_token_is_escaped_and_its_spaces_are_seen() -> None:
    records = chunked()
    rows = flat_rows(records, 0, block_size=4, texts={"a": ["<b>", " x\n"]})
    html = flat_batch(rows, 0, block_size=4).html
    assert "&lt;b&gt;" in html
    assert "\u00b7x\u21b5" in html


def test_steps_and_rows_that_do_not_exist_are_refused() -> None:
    records, rows = middle_step()
    with pytest.raises(ValueError, match="no step 99"):
        flat_rows(records, 99, block_size=4)
    with pytest.raises(ValueError, match="computed nothing"):
        flat_rows([StepRecord(step=5)], 5, block_size=4)
    with pytest.raises(ValueError, match="rows are 0 to 5"):
        flat_batch(rows, 6, block_size=4)
