"""SEMANTICS 27 at large: 500 random workloads, scheduled as vLLM 0.33.0 did, step by step.

`python tools/vllm_lab.py record` made the data, with vLLM's own scheduler; `run NUMBER` shows one
workload on both. What differs on purpose is listed in tests/data/vllm_traces/README.md, and tested
at the end of this file.
"""

from __future__ import annotations

import json
import lzma
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from vllm_lab_workloads import COUNT, make_exceptions, make_workload

from mini_engine.benchmarks.replay import Replay, as_records, differences, first_difference
from mini_engine.control.prefix_cache import PrefixCache
from mini_engine.control.request import Request
from mini_engine.control.scheduler import Scheduler
from mini_engine.parts import EngineParts
from mini_engine.trace import StepRecord

FILE = Path(__file__).parents[1] / "data" / "vllm_random.json.xz"
PARTS = 10  # one test per part, so that a failure is found quickly


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(lzma.decompress(FILE.read_bytes()))
    return content


@pytest.mark.parametrize("part", range(PARTS))
def test_case_27_random_workloads_are_scheduled_as_vllm_does(
    recorded: dict[str, Any], part: int
) -> None:
    for number in range(part, COUNT, PARTS):
        trace = recorded["traces"][number]
        replay = Replay(recorded["workloads"][number]).run()
        where = f"python tools/vllm_lab.py run {number}"
        assert first_difference(as_records(trace["steps"]), replay.engine.trace) is None, where
        assert replay.refused == list(trace["rejected"]), where
        reasons = {
            name: reason
            for record in replay.engine.trace
            for name, reason in record.finished.items()
        }
        for name, ending in trace["requests"].items():
            assert reasons.get(name, "abort") == ending["finish_reason"], (where, name)


def test_the_random_workloads_hold_what_they_are_to_cover(recorded: dict[str, Any]) -> None:
    seen: Counter[str] = Counter()
    for work, trace in zip(recorded["workloads"], recorded["traces"], strict=True):
        seen["without chunks"] += not work["enable_chunked_prefill"]
        seen["without cache"] += not work["enable_prefix_caching"]
        seen["priority"] += work["policy"] == "priority"
        seen["watermark"] += work["watermark"] > 0
        seen["threshold"] += work.get("long_prefill_token_threshold", 0) > 0
        seen["refused"] += len(trace["rejected"])
        seen["aborts"] += sum("abort_at_step" in one for one in work["requests"])
        seen["aborts inside a step"] += sum("abort_during_step" in o for o in work["requests"])
        for step in trace["steps"]:
            seen["steps"] += 1
            seen["preempted"] += len(step["preempted"])
            seen["resumed"] += len(step["resumed"])
            seen["hits"] += sum(hit > 0 for hit in step["cached"].values())
            seen["chunks"] += len(step["scheduled"]) - len(step["sampled"])
        assert not trace["stuck"]
    assert min(seen.values()) >= 70, seen
    assert seen["steps"] > 15_000
    assert seen["preempted"] > 500


def test_the_recorded_workloads_are_those_that_are_made_today(recorded: dict[str, Any]) -> None:
    for number in range(0, COUNT, 25):
        assert recorded["workloads"][number] == make_workload(number)


def test_a_difference_is_found_where_it_is() -> None:
    one = StepRecord(0, scheduled={"a": 1, "b": 2}, finished={"a": "stop"}, free_blocks=3)
    same = StepRecord(4, scheduled={"a": 1, "b": 2}, finished={"a": "length"}, free_blocks=3)
    other = StepRecord(0, scheduled={"b": 2, "a": 1}, finished={"a": "stop"}, free_blocks=2)
    assert first_difference([one], [same]) is None
    assert list(differences(one, other)) == [
        "scheduled: [('a', 1), ('b', 2)] and [('b', 2), ('a', 1)]",
        "free_blocks: 3 and 2",
    ]
    assert first_difference([one, one], [one, other]) == (1, list(differences(one, other)))
    assert first_difference([one, one], [one]) == (1, ["steps: 2 and 1"])


# What differs from vLLM on purpose: its traces of three workloads, and what happens here


def exception(recorded: dict[str, Any], name: str) -> tuple[dict[str, Any], Replay]:
    return recorded["exceptions"][name], Replay(make_exceptions()[name], debug=True).run()


def test_a_prompt_that_can_never_fit_waits_for_ever_in_vllm_and_is_refused_here(
    recorded: dict[str, Any],
) -> None:
    trace, replay = exception(recorded, "a prompt that can never fit")
    assert trace["stuck"]
    assert {len(step["scheduled"]) for step in trace["steps"]} == {0}
    assert replay.refused == ["long"]


def test_who_outgrows_the_pool_preempts_itself_for_ever_in_vllm_and_ends_here(
    recorded: dict[str, Any],
) -> None:
    trace, replay = exception(recorded, "a request that outgrows the pool")
    assert trace["stuck"]
    ours = replay.engine.trace
    steps = as_records(trace["steps"])
    assert [s.scheduled for s in steps[: len(ours)]] == [s.scheduled for s in ours]
    assert steps[len(ours)].preempted == ["growing"]
    assert ours[-1].finished == {"growing": "capacity"}


def test_the_watermark_is_a_share_of_all_blocks_in_vllm_and_of_the_usable_ones_here(
    recorded: dict[str, Any],
) -> None:
    """A quarter of 8 blocks is 2; of the 7 without vLLM's reserved one, 1, so one more fits."""
    trace, replay = exception(recorded, "the watermark")
    first = as_records(trace["steps"])[0]
    assert list(first.scheduled) == ["first"]
    assert list(replay.engine.trace[0].scheduled) == ["first", "second"]
    assert not trace["stuck"]


# These comparisons can fail


class IgnoresTheWatermark(Scheduler):
    def _fits(self, request: Request, hit: list[int]) -> bool:
        running, self.running = self.running, []
        fits = super()._fits(request, hit)
        self.running = running
        return fits


class PreemptsTheFirst(Scheduler):
    def _choose_victim(self) -> Request:
        return self.running[0]


class CapsARequestThatIsAlone(Scheduler):
    def _cap(self) -> int:
        return self.config.long_prefill_token_threshold or self.config.max_num_batched_tokens


class FreesFirstToLast(PrefixCache):
    def release(self, request: Request) -> None:
        request.block_table.reverse()
        super().release(request)


@pytest.mark.parametrize(
    "parts",
    [
        EngineParts(scheduler=IgnoresTheWatermark),
        EngineParts(scheduler=PreemptsTheFirst),
        EngineParts(scheduler=CapsARequestThatIsAlone),
        EngineParts(prefix_cache=FreesFirstToLast),
    ],
    ids=["watermark", "victim", "cap", "order of frees"],
)
def test_another_policy_does_not_go_unnoticed(recorded: dict[str, Any], parts: EngineParts) -> None:
    differing = (
        first_difference(as_records(trace["steps"]), Replay(work, parts).run().engine.trace)
        for work, trace in zip(recorded["workloads"], recorded["traces"], strict=True)
    )
    assert any(differing)
