"""The verdicts on schedulers: what vLLM did is legal, and each promise has its own words."""

from __future__ import annotations

import random
from typing import Any

import pytest

from judge import engine_checks, wire
from judge.api import Context
from judge.engine_run import shadow_engine
from judge.exercises import scheduler_priority
from judge.mistakes import scheduler_chunked, scheduler_continuous
from judge.mistakes.scheduler_plain import PlainScheduler
from judge.mistakes.scheduler_priority import EverybodysNames, NoArrival
from judge.sandbox import ROOT
from judge.scheduler_cases import RECORDED, random_script, recorded, request, script
from judge.scheduler_checks import legal, same_schedule
from judge.scheduler_run import run_requests
from mini_engine.control.scheduler import Scheduler
from mini_engine.interfaces import Chunk, ExerciseNotStarted

NAMES = sorted(path.stem.removeprefix("trace_") for path in RECORDED.glob("trace_*.json"))


def answer(part: Any, payload: Any) -> Any:
    return wire.copy(run_requests({"Scheduler": part}, wire.copy(payload), Context()))


def verdict(part: Any, case: Any) -> str:
    found = legal(case, answer(Scheduler, case.payload), answer(part, case.payload))
    return "" if found is None else "\n".join(found.lines)


def test_the_recorded_schedules_are_those_of_the_tests() -> None:
    assert len(NAMES) >= 13
    for path in RECORDED.glob("*.json"):
        assert path.read_bytes() == (ROOT / "tests/data/vllm_traces" / path.name).read_bytes()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("part", [Scheduler, PlainScheduler])
def test_what_vllm_did_is_legal(name: str, part: Any) -> None:
    case = recorded(name)
    found = answer(part, case.payload)
    assert legal(case, found, found) is None
    assert same_schedule(case, found, found) is None


@pytest.mark.parametrize("seed", range(40))
def test_the_reference_and_the_plain_scheduler_are_legal_and_agree(seed: int) -> None:
    rng = random.Random(seed)
    case = random_script(
        rng,
        aborts=seed % 2 == 0,
        failures=seed % 3 == 0,
        priorities=1 + 3 * (seed % 2),
        policy=rng.choice(["fcfs", "priority"]),
        num_blocks=rng.randint(9, 14),
        max_num_batched_tokens=rng.choice([5, 16, 64]),
        max_num_seqs=rng.choice([2, 8]),
        watermark=rng.choice([0.0, 0.2]),
        long_prefill_token_threshold=rng.choice([0, 3]),
        enable_prefix_caching=seed % 4 < 3,
        check=True,
    )
    theirs, ours = answer(Scheduler, case.payload), answer(PlainScheduler, case.payload)
    assert legal(case, theirs, theirs) is None
    assert legal(case, theirs, ours) is None
    assert same_schedule(case, theirs, ours) is None


def test_a_breach_names_request_step_state_and_both_schedules() -> None:
    class WholePrompts(PlainScheduler):
        def seat_left(self) -> bool:
            return super().seat_left() and self.waiting[0].num_tokens <= self.left

    decodes = [request("d0", 1, 12), request("d1", 1, 12)]
    case = script(
        random.Random(1), "a prompt of 10, budget 6", [*decodes, request("long", 10, 2, step=1)],
        max_num_batched_tokens=6,
    )  # fmt: skip
    said = verdict(WholePrompts, case).splitlines()
    assert said[:2] == [
        "a prompt of 10, budget 6",
        "step 1: long waits at the head of the queue and could have been admitted:",
    ]
    assert (
        "4 tokens of the budget and 6 seats are left, it needs 3 of the 198 free blocks" in said[2]
    )
    assert (
        "running d0 (1 of 2 tokens computed), d1 (1 of 2 tokens computed); waiting long"
        in "".join(said)
    )
    assert said[-2:] == [
        "step 1, expected: d0 1, d1 1, long 4",
        "step 1, got:      d0 1, d1 1",
    ]


def test_a_block_given_away_too_early_is_seen_without_a_model() -> None:
    class FreesEarly(PlainScheduler):
        def advance(self, chunk: Chunk) -> None:
            super().advance(chunk)
            for other in self.running[1:]:
                table = list(other.block_table)
                self.cache.release(other)
                other.block_table.extend(table)

    case = script(random.Random(2), "two", [request("a", 6, 9), request("b", 6, 9)], num_blocks=5)
    assert "block" in verdict(FreesEarly, case)


def test_what_a_learner_returns_is_looked_at_before_it_is_used() -> None:
    class Nothing(PlainScheduler):
        def schedule(self) -> Any:
            return None

    class Texts(PlainScheduler):
        def update(self, schedule: Any, sampled: Any) -> Any:
            return [r.request_id for r in super().update(schedule, sampled)]

    case = script(random.Random(3), "one", [request("a", 6, 3)])
    assert "schedule returned NoneType, expected a Schedule" in verdict(Nothing, case)
    assert "update returned list, expected a list of Requests" in verdict(Texts, case)


def test_a_scheduler_that_never_schedules_ends() -> None:
    class Idle(PlainScheduler):
        def serve_running(self) -> None:
            """Nobody."""

        def may_admit(self) -> bool:
            return False

    case = script(random.Random(3), "one", [request("a", 6, 3)])
    found = answer(Idle, case.payload)
    assert found["stopped"] == "3 steps in a row computed nothing"
    assert "a waits at the head of the queue" in verdict(Idle, case)


def test_an_error_inside_the_engine_is_not_hidden_by_an_abort_that_is_a_stub() -> None:
    class Unfinished(PlainScheduler):
        def update(self, schedule: Any, sampled: Any) -> Any:
            raise ZeroDivisionError("in update")

        def abort(self, request_id: str) -> bool:
            raise ExerciseNotStarted("Scheduler.abort")

    payload = engine_checks.workload(
        random.Random(0), vocab_size=50, num_requests=2, longest=8, num_blocks=20, budget=16,
        debug=True,
    )  # fmt: skip
    found = shadow_engine({"Scheduler": Unfinished}, payload, Context(slot="scheduler"))
    assert found.type_name == "ZeroDivisionError"
    fine = shadow_engine({"Scheduler": PlainScheduler}, payload, Context(slot="scheduler"))
    assert fine["free"] == 20, "debug mode does without check_invariants of the scheduler"


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (scheduler_continuous.NeverLooks, "a hit of 0 tokens, and lookup had blocks of its"),
        (scheduler_continuous.PartOfHit, "a hit of 4 tokens, and lookup had blocks of its first 8"),
        (scheduler_chunked.GrowsForAll, "a holds 3 blocks; the 8 tokens that are computed"),
    ],
)
def test_hits_and_blocks_are_those_of_the_contract(part: Any, said: str) -> None:
    tokens = list(range(9))
    pair = [request("a", tokens, 3), request("b", [*tokens, 70, 71], 3, step=2)]
    case = script(
        random.Random(4), "b begins like a", pair, enable_prefix_caching=True,
        max_num_batched_tokens=8,
    )  # fmt: skip
    assert verdict(PlainScheduler, case) == ""
    assert said in verdict(part, case)


def test_blocks_lack_at_admission_and_nobody_is_to_be_preempted() -> None:
    class AdmitsAll(PlainScheduler):
        def fits(self, request: Any, hit: list[int]) -> bool:
            return True

    pair = [request("a", 6, 6), request("b", 9, 2)]
    said = verdict(AdmitsAll, script(random.Random(5), "4 blocks", pair, num_blocks=4))
    assert "it raised OutOfBlocks" in said
    assert "at the admission of b: nobody is preempted for who waits" in said
    assert "if it says no, preempt" not in said


def test_names_of_others_and_equal_arrivals_are_said() -> None:
    cases = scheduler_priority.in_this_step(random.Random(6))
    texts = [verdict(EverybodysNames, case) for case in cases]
    assert any("take_back_names() took the names" in text for text in texts)
    assert all("KeyError" not in text or "only the victim's are due" in text for text in texts)
    cases = scheduler_priority.victims(random.Random(6))
    texts = [verdict(NoArrival, case) for case in cases]
    assert any("are equal: add gives each its own, counting up" in text for text in texts)
