"""Two schedules side by side: what agrees, what differs, what is said about it."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from mini_engine.show import schedule_diff
from mini_engine.show.markup import Figure
from tests.show.traces import preempting, sharing


def grid(figure: Figure) -> list[list[str]]:
    table = next(ElementTree.fromstring(figure.html).iter("table"))
    return [[" ".join("".join(cell.itertext()).split()) for cell in row]
            for row in table.iter("tr")]  # fmt: skip


def test_equal_schedules_are_said_to_be_equal() -> None:
    figure = schedule_diff(preempting(), preempting(), 3)
    rows = grid(figure)
    assert rows[0][:3] == ["request", "step 1 expected", "yours"]
    assert rows[1] == ["A", "D 1", "=", "D 1", "=", "D 1", "=", "D 1", "="]
    assert rows[2][5:7] == ["X", "="]
    assert figure.sentence == "Steps 1 to 4, around step 3: both schedules are the same."


def test_what_differs_is_hatched_marked_and_named() -> None:
    mine = sharing()
    yours = [*mine[:1], replace(mine[1], scheduled={"A": 1, "B": 53}, cached={"B": 0},
                                free_blocks=2), *mine[2:]]  # fmt: skip
    figure = schedule_diff(mine, yours, 1)
    assert "! P 53" in grid(figure)[2]
    assert "repeating-linear-gradient" in figure.html
    assert "step 1, B: expected P 5 hit 48, yours P 53" in figure.sentence
    assert "step 1, free blocks: expected" in figure.sentence
    assert 'aria-label="' in figure.html


def test_a_run_that_stopped_says_so_once() -> None:
    figure = schedule_diff(preempting(), preempting()[:3], 3, stopped=True)
    column = [row[6] for row in grid(figure)[1:]]
    assert column == ["! stopped by an error", "", ""]
    assert figure.sentence.endswith("step 3, yours: stopped by an error.")


def test_requests_that_do_nothing_near_the_step_are_left_out() -> None:
    rows = grid(schedule_diff(sharing(), sharing(), 0, after=0))
    assert [row[0] for row in rows] == ["request", "A", "free blocks"]


def test_ids_are_escaped_and_a_step_far_off_is_refused() -> None:
    wild = [replace(record, scheduled={"<b>": 1}, running=["<b>"], computed={"<b>": 0})
            for record in preempting()[:1]]  # fmt: skip
    assert "<b><b>" not in schedule_diff(wild, wild, 0).html
    with pytest.raises(ValueError, match="neither run has a step near 99"):
        schedule_diff(preempting(), preempting(), 99)
