"""Owns the verdicts on a scheduler's run: is it legal, and is it the schedule of vLLM?"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from judge import engine_checks
from judge.api import Case, Check, Difference
from judge.compare import about_raised, show
from judge.scheduler_cases import recorded
from judge.scheduler_ledger import Ledger, Lines
from judge.scheduler_rules import Referee
from judge.wire import Raised

RUN = "judge.scheduler_run:run_requests"
Cases = Callable[[random.Random], Sequence[Case]]


def contract(name: str, title: str, cases: Cases) -> Check:
    """A check that accepts every legal schedule and names the first breach."""
    return Check(name, title, RUN, cases, legal)


def reference_schedule(check: Check) -> Check:
    """Policy: the reference's schedule, step by step, in the cases of a contract check."""
    title = "the reference's schedule, step by step"
    return Check("schedule", title, RUN, check.cases, same_schedule, kind="policy",
                 answers_of=check.name)  # fmt: skip


def vllm_schedule(*names: str) -> Check:
    """Policy: what vLLM's scheduler did with recorded workloads, step by step."""
    title = "as vLLM 0.33.0 scheduled these workloads, step by step"
    return Check("vllm", title, RUN, lambda rng: [recorded(name) for name in names], same_schedule,
                 kind="policy", follows="the reference and vLLM")  # fmt: skip


def inside_the_engine(*, num_blocks: int, budget: int, **options: Any) -> tuple[Check, Check]:
    """The scheduler inside the whole engine, with poisoned slots: with the shadow model, and spare.

    Nothing is aborted in it: that is a later exercise.
    """

    def cases(rng: random.Random, count: int = engine_checks.NUM_WORKLOADS) -> list[Case]:
        made = [
            engine_checks.workload(
                rng, vocab_size=engine_checks.VOCAB, num_requests=5, longest=24,
                num_blocks=num_blocks, budget=budget, debug=True, **options,
            )
            for _ in range(count)
        ]  # fmt: skip
        return [Case(engine_checks.describe_options(payload), payload) for payload in made]

    def tiny(rng: random.Random) -> list[Case]:
        return [engine_checks.with_torch(case)[1] for case in cases(rng, 1)]

    return (
        engine_checks.shadow_check(cases),
        replace(engine_checks.tiny_check(spare=True), cases=tiny),
    )


def legal(case: Case, expected: Any, got: Any) -> Difference | None:
    """Contract: no step breaks a promise, and every request gets its own tokens."""
    referee = Referee(case.payload)
    for number, record in enumerate(got["steps"]):
        before = state(referee, record)
        lines = referee.arrivals(record, got["refusals"])
        lines = lines or referee.aborts(record["aborted"], during=False)
        last = number == len(got["steps"]) - 1
        if lines is None and "chunks" in record:
            lines = referee.breach(record) or referee.aborts(record["aborted_during"], during=True)
            if lines is None and not (last and _raised_or_form(got)):
                lines = referee.after(record)
        if lines is not None:
            lines = (*lines, *_arrivals(referee, record))
            lines = (f"step {record['step']}: {lines[0]}", *lines[1:])
            return Difference((case.label, *lines, *around(expected, got, number, before)))
        if last and got["stopped"] is not None:
            return _stopped(case, expected, got, number, (referee, before))
    lines = referee.at_the_end(got)
    return None if lines is None else Difference((case.label, *lines))


def _raised_or_form(got: Any) -> bool:
    return got["stopped"] is not None and not str(got["stopped"]).endswith("computed nothing")


def _stopped(
    case: Case, expected: Any, got: Any, number: int, known: tuple[Ledger, Lines]
) -> Difference:
    (ledger, before), record = known, got["steps"][number]
    stopped, step = got["stopped"], record["step"]
    around_it = around(expected, got, number, before)
    if not isinstance(stopped, Raised):
        return Difference((case.label, f"step {step}: {stopped}", *around_it))
    lines = [case.label, f"step {step}: it raised {show(stopped)}", *about_raised(stopped)]
    if stopped.type_name == "OutOfBlocks":
        lines.append(_dry(ledger, record.get("dry_for")))
    if "chunks" not in record and record.get("taken_from"):
        lines.append(
            "before, take_back_names() took the names that this step gave to "
            f"{', '.join(record['taken_from'])}: only the victim's are due, take_back_names(victim)"
        )
    return Difference((*lines, *around_it), "error", stopped.frames)


def _arrivals(ledger: Ledger, record: Any) -> Lines:
    """A line if arrivals do not tell requests apart, where they are to."""
    same = record.get("same_arrival")
    if not same or ledger.config.policy != "priority":
        return ()
    return (f"the arrivals of {', '.join(same)} are equal: add gives each its own, counting up",)


def _dry(ledger: Ledger, name: str | None) -> str:
    """What to do where blocks ran out: for a request that runs, or at its admission."""
    if name in ledger.waiting:
        return (
            f"blocks lack at the admission of {name}: nobody is preempted for who waits, the head "
            "waits until blocks for all its known tokens are free"
        )
    return "the pool has run dry: ask can_grow first; if it says no, preempt"


def state(ledger: Ledger, record: Any) -> Lines:
    """A line on what there was before a step."""
    parts = []
    for name in ledger.running:
        one = ledger.seen[name]
        parts.append(f"{name} ({one.computed} of {one.total} tokens computed)")
    waiting = [*ledger.waiting, *record["arrived"]]
    config = ledger.config
    return (
        f"before: running {', '.join(parts) or 'nobody'}; "
        f"waiting {', '.join(waiting) or 'nobody'}",
        f"budget {config.max_num_batched_tokens}, {record['free_before']} of {config.num_blocks} "
        f"blocks of {config.block_size} free, at most {config.max_num_seqs} run",
    )  # fmt: skip


def around(expected: Any, got: Any, number: int, before: Lines) -> list[str]:
    """The state before the step in question, and both schedules as long as they agreed so far."""
    steps, theirs = got["steps"], expected["steps"]
    agree = all(
        number < len(theirs) and words(mine) == words(other)
        for mine, other in zip(steps[:number], theirs[:number], strict=False)
    )
    lines = list(before)
    if number:
        lines.append(f"step {steps[number - 1]['step']}: {words(steps[number - 1])}")
    step = f"step {steps[number]['step']}"
    if agree and number < len(theirs):
        lines.append(f"{step}, expected: {words(theirs[number])}")
        lines.append(f"{step}, got:      {words(steps[number])}")
    else:
        lines.append(f"{step}: {words(steps[number])}")
    return lines


def words(record: Any) -> str:
    """A schedule in a line: who computes how many tokens, who was preempted, who ended."""
    if "chunks" not in record:
        return "no schedule"
    text = ", ".join(f"{name} {num}" for name, _, num, _ in record["chunks"]) or "nothing"
    if record["preempted"]:
        text += f"; preempted {', '.join(record['preempted'])}"
    hits = [f"{name} {hit}" for name, hit in record["cached"].items() if hit]
    return text + (f"; hit {', '.join(hits)}" if hits else "")


def same_schedule(case: Case, expected: Any, got: Any) -> Difference | None:
    """Policy: step by step what the reference, or vLLM, did."""
    recorded_steps = case.notes.get("vllm")
    who = "the reference" if recorded_steps is None else "vLLM 0.33.0"
    theirs = _plain(expected["steps"]) if recorded_steps is None else _vllm(recorded_steps)
    ours = _plain(got["steps"])
    for want, have in zip(theirs, ours, strict=False):
        for key in ("scheduled", "preempted", "cached", "free blocks"):
            if want[key] != have[key]:
                place = f"step {want['step']}, {key}:"
                return Difference((case.label, place, f"{who}: {want[key]}", f"yours: {have[key]}"))
    if len(theirs) != len(ours):
        return Difference((case.label, f"{who} took {len(theirs)} steps, yours {len(ours)}"))
    return None


def _plain(steps: list[Any]) -> list[dict[str, Any]]:
    return [
        {
            "step": record["step"],
            "scheduled": [(name, num) for name, _, num, _ in record["chunks"]],
            "preempted": record["preempted"],
            "cached": record["cached"],
            "free blocks": record["free"],
        }
        for record in steps
        if record["alive"] and "chunks" in record  # vLLM's list leaves idle steps out
    ]


def _vllm(steps: list[Any]) -> list[dict[str, Any]]:
    return [
        {
            "step": step["step"],
            "scheduled": list(step["scheduled"].items()),
            "preempted": step["preempted"],
            "cached": step["cached"],
            "free blocks": step["free_blocks"],
        }
        for step in steps
    ]
