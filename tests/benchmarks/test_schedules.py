"""Owns the proof that runs without a model are the scheduler's own decisions."""

from __future__ import annotations

import random

import pytest

from mini_engine.benchmarks.budget import arrive_among_decodes, sweep
from mini_engine.benchmarks.schedules import Ask, trace_of
from mini_engine.compute.random_model import TINY_LLAMA, random_model
from mini_engine.control.scheduler import Scheduler


def test_a_long_prompt_gets_what_two_decodes_leave() -> None:
    asks = [Ask("a", 1, 20), Ask("b", 1, 20), Ask("long", 10, 2, step=1)]
    records = trace_of(asks, max_num_batched_tokens=6)
    assert [r.scheduled.get("long") for r in records[1:5]] == [4, 4, 2, 1]
    again = trace_of(asks, max_num_batched_tokens=6)
    assert [r.without_times() for r in records] == [r.without_times() for r in again]


def test_aborts_priorities_and_another_scheduler() -> None:
    class Mine(Scheduler):
        made = 0

        def schedule(self):
            Mine.made += 1
            return super().schedule()

    asks = [Ask("a", 4, 9, priority=2), Ask("b", 4, 9, priority=1)]
    records = trace_of(
        asks, aborts={"b": 3}, scheduler=Mine, policy="priority", max_num_seqs=1, num_blocks=8
    )
    assert Mine.made == len(records)
    assert records[0].new == ["b"]
    assert records[3].aborted == ["b"]
    assert list(records[-1].finished) == ["a"]


@pytest.mark.parametrize("budget", [4, 16])
def test_a_budget_is_measured_from_the_arrival_to_the_first_token(budget: int) -> None:
    model = random_model(TINY_LLAMA, seed=1)
    felt = arrive_among_decodes(model, budget, decodes=2, prompt=20)
    assert felt["steps"] == {4: 10, 16: 2}[budget]
    assert 0 < felt["median"] <= felt["longest"] <= felt["ttft"]


def test_a_sweep_has_a_row_for_each_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    from mini_engine.benchmarks import budget

    rng = random.Random(5)
    monkeypatch.setattr(
        budget, "arrive_among_decodes", lambda model, size: {"ttft": rng.random(), "steps": size}
    )
    rows = sweep(None, (8, 16), rounds=3)
    assert [(row["budget"], row["steps"]) for row in rows] == [(8, 8), (16, 16)]
