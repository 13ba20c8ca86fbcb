"""Owns the checks of control-plane parts inside the engine: their workloads, contract and policy.

The runs themselves are `engine_run`'s. Contract: the reference's tokens, and a trace that breaks no
invariant (`engine_verdict`). Policy: the reference's schedule, step by step.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from judge.api import Case, Check, Difference
from judge.compare import show
from judge.engine_report import prompt_length
from judge.engine_verdict import fingerprint, look, tokens_and_trace
from judge.models import REAL
from judge.schedule_table import side_by_side
from judge.wire import Raised

__all__ = [
    "control_plane_checks",
    "describe_options",
    "prompt_length",
    "same_schedule",
    "shadow_check",
    "smollm2_check",
    "tiny_check",
    "tokens_and_trace",
    "workload",
]
Workloads = Callable[[random.Random], Sequence[Case]]
SHADOW = "judge.engine_run:shadow_engine"
NUM_WORKLOADS = 8
VOCAB = 64  # of the workloads that a tiny random model can run, too
POLICY = ("scheduled", "cached", "preempted", "free_blocks")


def workload(
    rng: random.Random,
    *,
    vocab_size: int,
    num_requests: int,
    longest: int,
    num_blocks: int,
    budget: int,
    aborts: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """A payload: requests that share prefixes, arrive over time and run short of blocks."""
    common = [rng.randrange(vocab_size) for _ in range(longest)]
    requests = []
    for number in range(num_requests):
        shared = rng.randrange(longest // 2)
        own = [rng.randrange(vocab_size) for _ in range(rng.randint(1, longest // 2))]
        step = rng.randrange(1 + num_requests)
        ends = step + rng.randint(1, 6) if aborts and rng.random() < 0.25 else None
        requests.append(
            {
                "id": f"request-{number}",
                "prompt": common[:shared] + own,
                "max_tokens": rng.randint(1, 12),
                "step": step,
                "abort": ends,
            }
        )
    return {
        "token_seed": rng.randrange(10**6),
        "model_seed": rng.randrange(10**6),
        "vocab_size": vocab_size,
        "requests": requests,
        "options": {
            "block_size": 4,
            "num_blocks": num_blocks,
            "max_model_len": longest + 16,
            "max_num_batched_tokens": budget,
            **options,
        },
    }


def describe_options(payload: Any) -> str:
    options = payload["options"]
    count = len(payload["requests"])
    return (
        f"{count} requests, {options['num_blocks']} blocks of {options['block_size']}, "
        f"budget {options['max_num_batched_tokens']}"
    )


def same_schedule(case: Case, expected: Any, got: Any) -> Difference | None:
    """Policy: step by step the schedule, hits, preemptions and free blocks of the reference."""
    place = f"inside the engine: {case.label}"
    if isinstance(got, Raised):
        return Difference((place, f"the engine stopped: {show(got)}"), "error", got.frames)
    ours, theirs = expected["trace"], got["trace"]
    for want, have in zip(ours, theirs, strict=False):
        for name in POLICY:
            if want[name] != have[name]:
                line = f"step {want['step']}, {name}: {_unlike(want[name], have[name])}"
                schedules = side_by_side(ours, theirs, want["step"])
                return Difference((place, line), schedules=schedules)
    if len(ours) != len(theirs):
        step = min(len(ours), len(theirs))
        lines = (place, f"expected {len(ours)} steps, got {len(theirs)}")
        return Difference(lines, schedules=side_by_side(ours, theirs, step))
    return None


def _unlike(want: Any, have: Any) -> str:
    """Where two values of a step differ; of mappings only the first entry that does."""
    if isinstance(want, dict) and isinstance(have, dict):
        for key in (*want, *have):
            if want.get(key) != have.get(key):
                mine, yours = (show(part.get(key, "none"), 40) for part in (want, have))
                return f"{key}: expected {mine}, got {yours}"
    return f"expected {show(want, 100)}, got {show(have, 100)}"


def shadow_check(workloads: Workloads) -> Check:
    """Contract of a part that needs no torch, inside the engine with the shadow model.

    A failing workload runs again with a tiny random model, which has logits and layers to show.
    """
    return Check(
        "engine", "inside the engine, with a shadow model", SHADOW, workloads, tokens_and_trace,
        last=True, look=look, fingerprint=fingerprint, closer=with_torch,
    )  # fmt: skip


def with_torch(case: Case) -> tuple[Check, Case]:
    """The check and the case that run a workload of the shadow model with a tiny random one."""
    label = f"a tiny random model, {case.label}"
    return tiny_check(), replace(case, label=label, payload={**case.payload, "model": "tiny"})


def control_plane_checks() -> tuple[Check, Check]:
    """Contract and policy of a control-plane part inside the engine, with the shadow model."""
    return (
        shadow_check(control_workloads),
        Check(
            "engine-schedule", "inside the engine: the reference's schedule, step by step", SHADOW,
            control_workloads, same_schedule, kind="policy", last=True, answers_of="engine",
        ),
    )  # fmt: skip


def tiny_check(*, spare: bool = False, **options: Any) -> Check:
    """The part inside the whole engine, with a tiny random model.

    It is `spare` beside a check with the shadow model, which proves the same.
    """

    def cases(rng: random.Random) -> list[Case]:
        payload = workload(
            rng, vocab_size=VOCAB, num_requests=5, longest=24, num_blocks=14, budget=12, **options
        )
        return [
            Case(f"a tiny random model, {describe_options(payload)}", {**payload, "model": "tiny"})
        ]

    return Check(
        "engine-tiny", "inside the engine, with a tiny random model",
        "judge.engine_run:tiny_engine", cases, tokens_and_trace, look=look, fingerprint=fingerprint,
        needs=("tiny",), last=True, limit_s=20.0, spare=spare,
    )  # fmt: skip


def smollm2_check(**options: Any) -> Check:
    """The part inside the whole engine, with SmolLM2."""

    def cases(rng: random.Random) -> list[Case]:
        payload = workload(
            rng, vocab_size=40_000, num_requests=3, longest=40, num_blocks=24, budget=32, **options
        )
        return [Case(f"SmolLM2, {describe_options(payload)}", {**payload, "model": REAL})]

    return Check(
        "engine-smollm2", "inside the engine, with SmolLM2",
        "judge.engine_run:smollm2_engine", cases, tokens_and_trace, look=look,
        fingerprint=fingerprint, needs=("smollm2",), last=True, limit_s=60.0,
    )  # fmt: skip


def control_workloads(rng: random.Random) -> list[Case]:
    """Workloads short of blocks, with and without prefix cache, chunks and aborts."""
    cases = []
    for number in range(NUM_WORKLOADS):
        payload = workload(
            rng,
            vocab_size=VOCAB,
            num_requests=8,
            longest=24,
            num_blocks=rng.randint(10, 16),
            budget=rng.choice([5, 16, 64]),
            aborts=number % 2 == 1,
            enable_prefix_caching=number % 4 < 3,
            debug=True,
        )
        cases.append(Case(describe_options(payload), payload))
    return cases
