"""Owns the proof that a chapter's timer runs the work as often as asked and reports the shortest."""

from __future__ import annotations

import pytest

from mini_engine.show.timing import seconds


def test_the_shortest_run_counts() -> None:
    moments = iter([10.0, 13.0, 20.0, 21.5, 30.0, 32.0])
    calls: list[int] = []
    assert seconds(lambda: calls.append(1), 3, clock=lambda: next(moments)) == 1.5
    assert len(calls) == 3


def test_no_run_is_refused() -> None:
    with pytest.raises(ValueError, match="repeats must be 1 or more, got 0"):
        seconds(lambda: None, 0)
