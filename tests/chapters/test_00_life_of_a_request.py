"""Chapter 00: the numbers in its prose are those of the engine, of its cells, or of arithmetic."""

from __future__ import annotations

from ast import literal_eval
from statistics import mean

import pytest

from mini_engine.benchmarks.virtual import (
    StepCost,
    random_arrivals,
    random_jobs,
    serve_at,
    serve_with,
)
from mini_engine.latency import (
    goodput,
    inter_token_latencies,
    percentile,
    time_per_output_token,
    time_to_first_token,
)
from mini_engine.show.journey import STOPS
from tests.chapters.chapter import Chapter


@pytest.fixture(scope="module")
def chapter() -> Chapter:
    return Chapter("00_life_of_a_request.ipynb")


def test_the_map_has_as_many_stops_as_the_prose_says(chapter: Chapter) -> None:
    on_gpu = [number for number, stop in enumerate(STOPS, start=1) if stop.lane == "GPU"]
    assert (len(STOPS), on_gpu) == (11, [7, 8])
    assert "Only two stops of eleven run on the GPU" in chapter.prose
    titles = [stop.title for stop in STOPS]
    assert titles.index("schedule") + 1 == 4
    assert titles.index("update") + 1 == 9
    assert "stops 4 to 9" in chapter.prose


def test_the_chunks_fill_what_the_decodes_leave(chapter: Chapter) -> None:
    lengths = chapter.output_of("long_prompt = ").split("]")[0].strip("[ ").split(", ")
    row = next(line for line in chapter.output_of("budget=64").splitlines() if line[:6] == "D long")
    assert lengths[-1] == "144"
    assert "P 61 each P 22 D 1" in row
    assert 61 + 61 + 22 == 144


def test_the_stutter_is_three_gaps_among_eleven(chapter: Chapter) -> None:
    steps = chapter.output_of("step_rows = ").splitlines()
    tokens = [int(row.split()[1]) for row in steps if row and row[0].isdigit()]
    stutter = [step for step, total in enumerate(tokens) if step and total > 4]
    assert stutter == [3, 4, 5]
    assert "is three gaps among eleven" in chapter.prose
    assert 64 // 3 == 21
    assert "The steps of 64 tokens hold 21 times as many as those of 3" in chapter.prose


def test_budget_arithmetic(chapter: Chapter) -> None:
    first, second = chapter.output_of("def steps_of").splitlines()[:2]
    assert [step["long"] for step in literal_eval(first)] == [4, 4, 2]
    assert [step["long"] for step in literal_eval(second)] == [10]
    assert "chunks are 4, 4, 2" in chapter.prose
    tokens = [sum(sum(step.values()) for step in literal_eval(s)) for s in (first, second)]
    assert tokens == [16, 12]
    assert "16 tokens in three steps against 12 in one" in chapter.prose


def test_the_clock_of_the_simulation(chapter: Chapter) -> None:
    assert StepCost() == StepCost(fixed=0.020, per_token=0.0005)
    assert "a step takes 20 ms, plus half a millisecond per token" in chapter.prose
    long = sum(job.prompt >= 200 for job in random_jobs(10_000, seed=0))
    assert long / 10_000 == pytest.approx(1 / 5, abs=0.02)
    assert "one in five has a long prompt" in chapter.prose


def test_stage_means_add_up_and_percentiles_do_not(chapter: Chapter) -> None:
    jobs = random_jobs(300, seed=0)
    served = serve_at(jobs, random_arrivals(300, rate=6.0, seed=1), max_num_seqs=16)
    stages = {
        s: [getattr(one, s) for one in served] for s in ("queue", "prefill", "decode", "total")
    }
    means, tails = {}, {}
    for stage, values in stages.items():
        means[stage], tails[stage] = mean(values), percentile(values, 95)
        assert f"{stage} {means[stage]:.3g} {tails[stage]:.3g}" in chapter.output_of("sums =")
    parts = ("queue", "prefill", "decode")
    assert sum(means[s] for s in parts) == pytest.approx(means["total"])
    assert sum(tails[s] for s in parts) > 1.2 * tails["total"]
    slowest = sorted(served, key=lambda one: one.total)[-15:]
    shares = {
        s: [
            sum(getattr(one, s) for one in group) / sum(one.total for one in group)
            for group in (served, slowest)
        ]
        for s in parts
    }
    for stage, (of_all, of_slowest) in shares.items():
        line = f"{stage} {of_all:.0%} of the time of all, {of_slowest:.0%} of the slowest 15"
        assert line in chapter.output_of("slowest = sorted")
    assert all(max(column) == column[-1] for column in zip(*shares.values(), strict=True))
    assert [s for s, (of_all, of_slowest) in shares.items() if of_slowest > of_all] == ["queue"]


def test_overload_shows_in_the_open_loop_only(chapter: Chapter) -> None:
    def tail(served: list) -> float:
        return percentile([one.token_times[0] - one.arrival for one in served], 95)

    jobs = random_jobs(300, seed=0)
    closed = serve_with(jobs, 16, max_num_seqs=16)
    assert len(jobs) / max(one.token_times[-1] for one in closed) == pytest.approx(8, abs=0.2)
    assert "16 clients get about 8 requests a second" in str(chapter.cells)
    opened = serve_at(jobs, random_arrivals(300, 10, seed=1), max_num_seqs=16)
    assert tail(opened) > 10 * tail(closed)
    assert "users wait ten times as long" in chapter.prose
    assert f"{tail(opened):.3g}" in chapter.output_of("def summary")
    for count, times in ((600, 2), (1200, 4)):  # the P95 measures the length of the test
        moments = random_arrivals(count, 10, seed=1)
        longer = tail(serve_at(random_jobs(count, seed=0), moments, max_num_seqs=16))
        assert longer / tail(opened) == pytest.approx(times, rel=0.1)
        assert f"{count} arrive, 10 per second" in chapter.output_of("def summary")
        assert f"{longer:.3g}" in chapter.output_of("def summary")
    assert "with 600 and 1,200 requests it is about twice and four times as long" in chapter.prose
    assert "the budget is 256" in chapter.prose


def test_an_abort_gives_the_blocks_back(chapter: Chapter) -> None:
    assert "free blocks: 32 before, 24 during, 32 after the abort" in chapter.output_of(
        "engine.abort"
    )
    assert "for nobody" in chapter.output_of("the client leaves here")


def test_exercises_are_shown_not_started(chapter: Chapter) -> None:
    shown = chapter.output_of('grade("life.prefill-chunks")')
    assert "not started yet: open practice/life.py" in shown
    assert "PASS" not in shown


def test_timing_quiz(chapter: Chapter) -> None:
    quiz = chapter.section("Timing quiz")
    moments = [2.5, 2.6, 2.7, 3.1]
    assert time_to_first_token(2.0, moments) == pytest.approx(0.5)
    assert inter_token_latencies(moments) == pytest.approx([0.1, 0.1, 0.4])
    assert time_per_output_token(moments) == pytest.approx(0.2)
    assert "TTFT = 2.5 - 2.0 = 0.5 s. ITL = 0.1, 0.1 and 0.4 s" in quiz
    assert "(3.1 - 2.5) / 3 = 0.2 s" in quiz

    waits = [1.0] * 9 + [11.0]
    assert (mean(waits), percentile(waits, 50)) == (2.0, 1.0)
    assert percentile(waits, 95) == pytest.approx(6.5)
    assert "Mean 2.0 s" in quiz
    assert "P50 = 1.0 s" in quiz
    assert "1 + 0.55 x 10 = 6.5 s" in quiz

    steps = [30 + tokens for tokens in (20, 20, 12)]
    assert steps == [50, 50, 42]
    assert sum(steps) == 142
    assert "TTFT = 142 ms" in quiz
    assert "gaps of 50, 50 and 42 ms, against 34 ms" in quiz

    served = [
        (0.0, [0.4, 0.48, 0.56]),
        (0.0, [0.9, 1.02, 1.14]),
        (0.0, [1.2, 1.25, 1.3]),
        (0.0, [0.8]),
    ]
    good = goodput(served, 10.0, max_ttft=1.0, max_tpot=0.1)
    assert good == pytest.approx(0.2)
    assert len(served) / 10 == pytest.approx(0.4)
    assert "goodput = 0.2 requests per second, while the throughput is 0.4" in quiz
