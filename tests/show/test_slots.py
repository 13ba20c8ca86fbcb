"""The map of slots shows exactly where the trace put each token."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from mini_engine.show.slots import slot_map
from tests.show.traces import chunked, preempting, sharing


def cells_of(html: str) -> list[list[str]]:
    """The table's rows as the text of their cells."""
    root = ElementTree.fromstring(html.replace("<br/>", " "))
    return [["".join(cell.itertext()).strip() for cell in row] for row in root.iter("tr")]


def test_every_token_stands_in_the_slot_that_its_table_says() -> None:
    records = preempting()
    figure = slot_map(records, records[2].step, block_size=4)
    rows = cells_of(figure.html)[1:]
    assert len(rows) == 4  # all blocks of the pool
    record = records[2]
    for request, table in record.block_tables.items():
        for position in range(record.computed[request] + record.scheduled[request]):
            row = rows[table[position // 4]]
            assert row[2 + position % 4] == f"{request}{position}"
    written = sum(record.computed[r] + record.scheduled[r] for r in record.block_tables)
    assert sum(bool(re.search(r"\d$", text)) for row in rows for text in row[2:]) == written


def test_slots_beyond_the_last_token_are_unwritten_and_other_blocks_free() -> None:
    figure = slot_map(chunked(), 0, block_size=4)
    rows = cells_of(figure.html)[1:]
    assert rows[0] == ["0", "0-3", "a0", "a1", "unwritten", "unwritten"]
    assert rows[5] == ["5", "20-23", "free", "free", "free", "free"]
    assert "a has 2 tokens in blocks 0" in figure.sentence


def test_a_shared_block_names_all_its_holders() -> None:
    figure = slot_map(sharing(), 1, block_size=16)
    assert cells_of(figure.html)[1][2] == "AB0"


def test_the_text_of_a_token_is_shown_and_escaped() -> None:
    records = chunked()
    figure = slot_map(records, 0, block_size=4, texts={"a": ["<b>", " x"]})
    assert cells_of(figure.html)[1][2:4] == ["a0 '<b>'", "a1 ' x'"]


def test_a_step_that_is_not_in_the_trace_is_refused() -> None:
    with pytest.raises(ValueError, match="no step 99"):
        slot_map(chunked(), 99, block_size=4)
