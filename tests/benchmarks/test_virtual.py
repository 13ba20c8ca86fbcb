"""Owns the proof that the load experiments keep a consistent clock and use the real scheduler."""

from __future__ import annotations

import pytest

from mini_engine.benchmarks.virtual import (
    Job,
    StepCost,
    random_arrivals,
    random_jobs,
    serve_at,
    serve_with,
)

COST = StepCost(fixed=1.0, per_token=0.1)


def test_one_job_by_hand() -> None:
    (served,) = serve_at([Job(10, 3)], [5.0], COST, max_num_batched_tokens=6)
    # Chunks of 6 and 4, then two decodes: 1.6, 1.4, 1.1 and 1.1 seconds.
    assert served.queue == 0
    assert served.prefill == pytest.approx(3.0)
    assert served.token_times == pytest.approx([8.0, 9.1, 10.2])
    assert served.total == pytest.approx(5.2)


def test_a_job_that_comes_during_a_step_waits_for_its_end() -> None:
    first, second = serve_at([Job(4, 2), Job(4, 1)], [0.0, 0.5], COST)
    assert first.token_times[0] == pytest.approx(1.4)
    assert second.started == pytest.approx(1.4)
    assert second.queue == pytest.approx(0.9)
    # The second step computes 1 + 4 tokens, for both.
    assert first.token_times[1] == second.token_times[0] == pytest.approx(2.9)


def test_an_idle_server_waits_for_the_next_job() -> None:
    first, second = serve_at([Job(4, 1), Job(4, 1)], [0.0, 100.0], COST)
    assert [first.total, second.total] == pytest.approx([1.4, 1.4])
    assert second.queue == 0


def test_concurrency_is_never_exceeded_and_always_used() -> None:
    jobs = random_jobs(40, seed=3)
    served = serve_with(jobs, 4, COST)
    assert [one.job for one in served] == jobs
    for moment in sorted(one.arrival for one in served):
        inside = sum(one.arrival <= moment < one.token_times[-1] for one in served)
        assert inside <= 4
        assert inside == 4 or moment >= served[-1].arrival


@pytest.mark.parametrize("mode", ["open", "closed"])
def test_every_job_gets_its_tokens_and_the_stages_add_up(mode: str) -> None:
    jobs = random_jobs(60, seed=1)
    served = (
        serve_at(jobs, random_arrivals(60, 2.0, seed=2)) if mode == "open" else serve_with(jobs, 8)
    )
    for one in served:
        assert len(one.token_times) == one.job.output
        assert one.queue >= 0
        assert one.prefill > 0
        assert one.queue + one.prefill + one.decode == pytest.approx(one.total)


def test_arrivals_repeat_and_have_the_rate_asked_for() -> None:
    moments = random_arrivals(4000, 5.0, seed=0)
    assert moments == random_arrivals(4000, 5.0, seed=0)
    assert 4000 / moments[-1] == pytest.approx(5.0, rel=0.05)


def test_wrong_loads_are_refused() -> None:
    with pytest.raises(ValueError, match="1 jobs but 2 arrivals"):
        serve_at([Job(1, 1)], [0.0, 1.0])
    with pytest.raises(ValueError, match="must not decrease"):
        serve_at([Job(1, 1)] * 2, [1.0, 0.0])
    with pytest.raises(ValueError, match="concurrency must be 1 or more"):
        serve_with([Job(1, 1)], 0)
