"""Chapter 04: what its prose says of schedules is what the scheduler and its cells show."""

from __future__ import annotations

import json
import re

import pytest

from judge.mistakes.scheduler_preempt import NoReservation
from judge.scheduler_cases import RECORDED
from mini_engine.benchmarks.budget import DECODES, PROMPT
from mini_engine.benchmarks.schedules import Ask, trace_of
from tests.chapters.chapter import ROOT, Chapter

LENGTHS = [4, 20, 8, 16, 6, 5, 22, 7]


@pytest.fixture(scope="module")
def chapter() -> Chapter:
    return Chapter("04_scheduler.ipynb")


def chunks(records: list, name: str) -> list[int]:
    return [r.scheduled[name] for r in records if name in r.scheduled]


def test_static_batches_take_as_long_as_their_longest_answers(chapter: Chapter) -> None:
    steps = max(LENGTHS[:4]) + max(LENGTHS[4:])
    idle = 1 - sum(LENGTHS) / (4 * steps)
    assert f"{steps} steps, {idle:.0%} of the rows idle" in chapter.output_of(
        "show.timeline(static"
    )
    assert "eight questions want between 4 and 22 tokens" in chapter.prose
    assert f"idle rows, static no prediction {idle:.0%}" in chapter.output_of("predictions(\n")


def test_continuous_batching_needs_fewer_steps_for_the_same_answers(chapter: Chapter) -> None:
    shown = chapter.output_of("show.timeline(continuous")
    asks = [Ask(f"r{i}", 12, n) for i, n in enumerate(LENGTHS)]
    records = trace_of(asks, max_num_seqs=4)
    idle = 1 - sum(len(r.scheduled) for r in records) / (4 * len(records))
    assert f"{len(records)} steps, {idle:.0%} of the rows idle; same answers: True" in shown


def test_the_rule_in_the_table(chapter: Chapter) -> None:
    shown = chapter.output_of("watched, outputs_so_far").splitlines()
    rows = [
        [int(n) for n in line.split()] for line in shown if re.fullmatch(r"\d+ \d+ \d+ \d+", line)
    ]
    assert len(rows) == LENGTHS[2]
    assert all(total - computed == chunk for _, computed, total, chunk in rows)
    assert [chunk for *_, chunk in rows[1:]] == [1] * (len(rows) - 1)


def test_the_sweep_bends_as_the_prose_says(chapter: Chapter) -> None:
    found = json.loads((ROOT / "assets" / "budget_sweep.json").read_text("utf-8"))
    assert (found["decodes"], found["prompt"]) == (DECODES, PROMPT) == (4, 480)
    assert "Four requests decode, and a prompt of 480 tokens arrives" in chapter.prose
    assert found["command"].partition(" --json")[0] in chapter.prose
    by_budget = {row["budget"]: row for row in found["rows"]}
    assert by_budget[8]["ttft"] > by_budget[512]["ttft"]
    assert by_budget[8]["median"] < by_budget[512]["median"]
    late, gap = (by_budget[256][k] / by_budget[128][k] for k in ("ttft", "median"))
    assert late > 0.75, "TTFT hardly gains any more"
    assert 1.7 < gap < 2, "while the gap nearly doubles"
    assert "Look between 128 and 256: TTFT hardly gains any more" in chapter.prose


def test_the_picture_under_the_slider(chapter: Chapter) -> None:
    asks = [Ask("A", 5, 9), Ask("B", 3, 11), Ask("C", 26, 4, step=2), Ask("D", 14, 3, step=3)]
    records = trace_of(asks, max_num_batched_tokens=12)
    assert [chunks(records, "C")[:3], chunks(records, "D")[:2]] == [[10, 10, 6], [4, 9]]
    last_chunk = [r.step for r in records if r.scheduled.get("C") == 6]
    assert [r.step for r in records if "D" in r.new] == last_chunk
    assert "D, although shorter, comes in only with C's last chunk" in chapter.prose
    narrow = trace_of(asks, max_num_batched_tokens=2)
    starts = next(r.step for r in narrow if "C" in r.new)
    ends = next(r.step for r in narrow if {"A", "B"} & r.finished.keys())
    assert starts == ends + 1


def test_the_last_one_is_preempted_and_answers_the_same(chapter: Chapter) -> None:
    shown = chapter.output_of("for record in tight_trace:")
    assert "same answers: True" in shown
    steps = dict(re.findall(r"(roomy|tight): (\d+ steps, \d+) tokens computed", shown))
    roomy, tight = ([int(n) for n in steps[k].split(" steps, ")] for k in ("roomy", "tight"))
    assert tight[0] > roomy[0]
    assert tight[1] > roomy[1]
    assert "preempted first no prediction C" in chapter.output_of("predictions(\n")


def test_tiny_waits_behind_big(chapter: Chapter) -> None:
    line = [Ask("A", 8, 5), Ask("big", 11, 2, step=1), Ask("tiny", 3, 2, step=1)]
    records = trace_of(line, num_blocks=4)
    end = next(r.step for r in records if "A" in r.finished)
    assert [next(r.step for r in records if n in r.new) for n in ("big", "tiny")] == [end + 1] * 2
    assert records[1].free_blocks == 1, "tiny would fit"


def test_thrashing(chapter: Chapter) -> None:
    crowd = [Ask(f"d{i}", 6, 24) for i in range(3)]
    crowd += [Ask(f"long{i}", 40, 4, step=2 + i) for i in range(2)]
    shown, found = chapter.output_of("NoReservation"), []
    for name, part in (("reserves", None), ("does not", NoReservation)):
        trace = trace_of(crowd, scheduler=part, num_blocks=14, max_num_batched_tokens=12)
        preemptions = sum(len(r.preempted) for r in trace)
        assert f"{name} {sum(r.total for r in trace)} {preemptions} {len(trace)}" in shown
        found.append((len(trace), sum(r.total for r in trace)))
    (long, few), (short, many) = found
    assert short < long
    assert f"{many} tokens computed instead of {few}" in chapter.prose


def test_low_waits_for_all_that_are_urgent(chapter: Chapter) -> None:
    urgent = [Ask(f"u{i}", 8, 6, step=2 * i) for i in range(9)]
    low = Ask("low", 6, 4, step=3, priority=9)
    starts = {}
    for policy in ("fcfs", "priority"):
        trace = trace_of([*urgent, low], policy=policy, max_num_seqs=2)
        starts[policy] = next(r.step for r in trace if "low" in r.new)
        text = f"{policy}: `low` arrives in step 3 and starts in step {starts[policy]}"
        assert text in chapter.output_of("waits = Ask(")
        last = max(next(r.step for r in trace if u.name in r.new) for u in urgent)
    assert starts["priority"] > last > starts["fcfs"]


def test_one_that_runs_starves_under_priority_when_blocks_lack(chapter: Chapter) -> None:
    low = Ask("low", 4, 18, priority=9)
    asks = [low, *(Ask(f"u{i}", 4, 11, step=2 + 7 * i) for i in range(8))]
    thrown_out = {}
    for policy in ("priority", "fcfs"):
        trace = trace_of(asks, policy=policy, num_blocks=7)
        thrown_out[policy] = sum("low" in r.preempted for r in trace)
    assert thrown_out == {"priority": 4, "fcfs": 0}
    assert "priorities can throw it out again and again" in chapter.prose


def test_released_blocks_go_back_to_the_pool(chapter: Chapter) -> None:
    shown = chapter.output_of("for name in asked:")
    held = re.search(r"none: \[(\d+), (\d+), (\d+), 0\]; reason: abort", shown)
    assert held
    assert int(held[1]) > int(held[2]) > int(held[3]) > 0
    assert "keys of layer 0 where they were: True" in shown
    assert "old numbers still in a free block: True" in shown


def test_the_exercises_are_shown_as_not_started(chapter: Chapter) -> None:
    for name in ("continuous", "chunked", "preempt", "abort", "priority"):
        shown = chapter.output_of(f'grade("scheduler.{name}")')
        assert "not started yet: open practice/scheduler.py" in shown
        assert "PASS" not in shown


def test_quiz_and_the_claim_about_vllm(chapter: Chapter) -> None:
    asks = [Ask("d", 1, 20), Ask("p", 12, 2, step=1), Ask("q", 5, 2, step=1)]
    records = trace_of(asks, max_num_batched_tokens=9)
    assert [dict(r.scheduled) for r in records[1:3]] == [{"d": 1, "p": 8}, {"d": 1, "p": 4, "q": 4}]
    assert "1 and 8, then 1, 4 and 4: the first prompt" in chapter.prose
    assert len(list(RECORDED.glob("trace_*.json"))) > 10, "our traces agree step by step"
