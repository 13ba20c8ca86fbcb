"""Exercises of chapter 07 on a GPU: the same checks, and a visible gap where there is none."""

from __future__ import annotations

import random

import pytest

from judge.exercises import find
from judge.exercises.graphs_runner import captures, made
from judge.runner import Grader, Options, reference_source
from judge.workers import Workers
from tests.graphs.devices import PROBLEM


@pytest.mark.skipif(PROBLEM is None, reason="there is a GPU")
def test_without_a_gpu_the_checks_that_were_asked_for_on_it_are_skipped() -> None:
    (exercise,) = find("graphs.find-the-bug")
    with Workers() as workers:
        options = Options(seed=1, device="cuda")
        result = Grader(exercise, reference_source(exercise), options, workers).run()
    assert [found.status for found in result.results] == ["skipped", "skipped"]
    assert "there is none" in result.results[0].lines[0]
    assert result.status == "skipped"


def events(*captured: tuple[int, bool], warm: tuple[int, ...]) -> dict[str, object]:
    """What the judge saw of these captures, (rows, in the first pool), after these warm-ups."""
    found: list[list[object]] = [["forward", rows] for rows in warm]
    for rows, shared in captured:
        found += [["begin", shared], ["forward", rows], ["end"]]
    return {"made": found}


def test_what_is_wrong_with_the_captures_is_said() -> None:
    case = made(random.Random(0))[1]
    right = events((4, False), (2, True), (1, True), warm=(4, 2, 1))
    assert captures(case, right, right) is None
    for got, words in (
        (events((1, False), (2, True), (4, True), warm=(4, 2, 1)), "captured in the order"),
        (events((4, False), (2, False), (1, True), warm=(4, 2, 1)), "graph of 2 rows takes a pool"),
        (events((4, False), (2, True), (1, True), warm=(4, 2)), "of 1 row was captured without"),
        (events((4, False), (1, True), warm=(4, 1)), "expected graphs of [1, 2, 4] rows"),
    ):
        found = captures(case, right, got)
        assert found is not None
        assert words in found.lines[-1]
