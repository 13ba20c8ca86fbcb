"""Owns the checks of tensor functions inside the engine: their workloads.

What is compared, and where a near tie excuses a token, is `engine_verdict`'s.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from judge import engine_checks, engine_run
from judge.api import Case, Check
from judge.engine_report import margin, pieces
from judge.engine_verdict import fingerprint, look, tokens_and_trace
from judge.models import REAL
from judge.tie_band import FLOOR

__all__ = [
    "TIE",
    "eventful",
    "events",
    "first_difference",
    "margin",
    "pieces",
    "shadow_check",
    "smollm2_check",
    "tiny_check",
]  # fmt: skip
RUN = "judge.tensor_engine:run"
TIE = FLOOR  # for answers of one request alone, where no band is measured
EVENTS = ("chunks", "preemption", "prefix hit")
TRIES = 400


def eventful(rng: random.Random, **sizes: Any) -> dict[str, Any]:
    """A workload with a chunked prompt, a preemption and a prefix hit.

    Found by running its schedule without a model: which tokens come out changes no schedule.
    """
    for _ in range(TRIES):
        payload = engine_checks.workload(rng, **sizes)
        if all(events(payload).values()):
            return payload
    raise RuntimeError(f"no workload with {', '.join(EVENTS)} in {TRIES} tries; sizes {sizes}")


def events(payload: Any) -> dict[str, bool]:
    """Which of EVENTS the schedule of a workload has."""
    from mini_engine.engine import LLMEngine

    runner = engine_run.MadeUpTokens(payload["token_seed"], payload["vocab_size"])
    engine = LLMEngine(runner=runner, **payload["options"])
    engine_run.serve(engine, payload)
    trace = engine.trace
    cut = any(
        record.computed[name] + count < engine_checks.prompt_length(payload, name)
        for record in trace
        for name, count in record.scheduled.items()
    )
    preempted = any(record.preempted for record in trace)
    hit = any(count for record in trace for count in record.cached.values())
    return dict(zip(EVENTS, (cut, preempted, hit), strict=True))


def tiny_check(*models: str, spare: bool = False, **options: Any) -> Check:
    """The part inside the engine, with tiny random models; `options` are the engine's.

    It is `spare` beside a check with the shadow model, which proves the same.
    """

    def cases(rng: random.Random) -> list[Case]:
        found = []
        for model in models:
            payload = eventful(
                rng,
                vocab_size=512,
                num_requests=5,
                longest=24,
                num_blocks=12,
                budget=12,
                debug=True,
                **options,
            )
            label = f"a tiny random {model} model, {engine_checks.describe_options(payload)}"
            found.append(Case(label, {**payload, "model": model}))
        return found

    return Check(
        "engine-tiny", "inside the engine, tiny random models: the reference's tokens",
        RUN, cases, tokens_and_trace, look=look, fingerprint=fingerprint,
        needs=("tiny",), last=True, limit_s=20.0, spare=spare,
    )  # fmt: skip


def shadow_check() -> Check:
    """A function of plain integers inside the engine with the shadow model.

    A failing workload runs again with a tiny random model, which has logits and layers to show.
    """
    return replace(engine_checks.shadow_check(engine_checks.control_workloads), closer=with_torch)


def with_torch(case: Case) -> tuple[Check, Case]:
    """The check and the case that run a workload of the shadow model with a tiny random one."""
    label = f"a tiny random llama model, {case.label}"
    payload = {**case.payload, "model": "llama"}
    return tiny_check("llama"), replace(case, label=label, payload=payload)


def smollm2_check() -> Check:
    """The function inside the engine, with SmolLM2."""

    def cases(rng: random.Random) -> list[Case]:
        payload = eventful(
            rng, vocab_size=40_000, num_requests=4, longest=32, num_blocks=14, budget=24
        )
        label = f"SmolLM2, {engine_checks.describe_options(payload)}"
        return [Case(label, {**payload, "model": REAL})]

    return Check(
        "engine-smollm2", "inside the engine, SmolLM2: the reference's tokens",
        RUN, cases, tokens_and_trace, look=look, fingerprint=fingerprint,
        needs=("smollm2",), last=True, limit_s=60.0,
    )  # fmt: skip


def first_difference(tokens: Any, have: Any, tops: Any) -> int | None:
    """The first output that differs beyond the tie band, or None."""
    for number, want in enumerate(tokens):
        if number < len(have) and have[number] == want:
            continue
        tied = number < len(tops) and margin(tops[number]) < TIE
        return None if tied and number < len(have) else number
    return len(tokens) if len(have) > len(tokens) else None
