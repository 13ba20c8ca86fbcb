"""The recap: what its prose tells of the four requests is what the run shows."""

from __future__ import annotations

import html
import re
from ast import literal_eval

import pytest

from mini_engine.show.journey import STOPS
from tests.chapters.chapter import Chapter


@pytest.fixture(scope="module")
def recap() -> Chapter:
    return Chapter("05b_recap.ipynb")


def test_memory_is_too_small_for_the_four(recap: Chapter) -> None:
    printed = recap.output_of("my_prompts = [")
    sizes = literal_eval(printed.split("prompts: ")[1].split("]")[0] + "]")
    assert len(sizes) == 4
    blocks = [-(-(size + 11) // 16) for size in sizes]
    assert sum(blocks) - 3 > 7  # even with three blocks shared
    assert max(blocks) <= 7
    assert sizes[1] > 32
    assert "there are 7 blocks of 16" in recap.prose


def test_each_sentence_about_the_timeline(recap: Chapter) -> None:
    shown = recap.output_of("def run(prompts)")
    assert "preempted" in shown
    assert re.search(r"B P 31 each P 4 D 1", shown)  # in three chunks, A's decodes beside it
    assert "hit 48" in shown
    assert "hit 64" in shown
    assert "Its *prefix hit* is 48 tokens" in recap.prose


def test_c_finds_all_that_it_had(recap: Chapter) -> None:
    assert "0 of them a second time" in recap.output_of("first_of_d = next")
    assert "it finds them all" in recap.prose


def test_predictions_are_worked_out_again(recap: Chapter) -> None:
    shown = html.unescape(recap.output_of("predictions(\n"))
    for outcome in ("[61, 61, 22]", "[[4, 4, 2], [10]]", "16"):
        assert outcome in shown
    first = re.search(r"the step of D's first token no prediction (\d+)", shown)
    assert first
    assert int(first.group(1)) > 5


def test_d_waited_longest_and_cs_pause_shows(recap: Chapter) -> None:
    rows = recap.output_of("What each user felt, on this machine")
    times = re.findall(r"^([A-D]) ([\d,.]+) ([\d,.]+) ([\d,.]+) (\d+)$", rows, re.MULTILINE)
    assert [row[0] for row in times] == ["A", "B", "C", "D"]
    waited = [float(row[1].replace(",", "")) for row in times]
    pause = [float(row[3].replace(",", "")) for row in times]
    assert max(waited) == waited[3]
    assert max(pause) == pause[2]
    assert "C's pause is its longest ITL" in recap.prose


def test_the_stops_are_those_of_the_map(recap: Chapter) -> None:
    titles = [stop.title for stop in STOPS]
    assert titles[3:9] == ["schedule", "blocks", "batch", "forward", "sample", "update"]
    assert [number for number, stop in enumerate(STOPS, start=1) if stop.lane == "GPU"] == [7, 8]
    assert "Stop 4, the schedule" in recap.prose
