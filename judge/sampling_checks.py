"""Owns the checks of sampling functions inside the engine: workloads with random requests."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from judge import engine_checks
from judge.api import Case, Check
from judge.engine_verdict import fingerprint
from judge.models import REAL
from judge.sampling_compare import in_engine, look
from judge.tensor_checks import eventful

RUN = "judge.sampling_calls:in_engine"
Params = dict[str, Any]
DRAWN: tuple[Params, ...] = (
    {"temperature": 1.0},
    {},
    {"temperature": 0.8, "top_p": 0.9},
    {"temperature": 1.3, "top_k": 20},
    {"temperature": 1.0, "min_p": 0.05},
    {"temperature": 1.1, "min_p": 0.01, "top_k": 40, "top_p": 0.95},
)


def with_params(rng: random.Random, payload: Any, kinds: Sequence[Params]) -> dict[str, Any]:
    """The workload with the kinds of requests in turn; whatever draws has a seed."""
    requests = []
    for number, request in enumerate(payload["requests"]):
        params = dict(kinds[number % len(kinds)])
        if params.get("temperature"):
            params["seed"] = rng.randrange(10**6)
        requests.append({**request, "params": params})
    return {**payload, "requests": requests}


def alone(payload: Any) -> dict[str, Any]:
    """The same requests, each arriving when the one before it has ended."""
    budget, step, requests = payload["options"]["max_num_batched_tokens"], 0, []
    for request in payload["requests"]:
        requests.append({**request, "step": step})
        step += -(-len(request["prompt"]) // budget) + request["max_tokens"] + 1
    return {**payload, "requests": requests}


def engine_check(kinds: Sequence[Params] = DRAWN) -> Check:
    """The function inside the engine: greedy and random requests side by side, then one by one."""

    def cases(rng: random.Random) -> list[Case]:
        payload = eventful(
            rng, vocab_size=512, num_requests=len(kinds), longest=24, num_blocks=12, budget=12,
            debug=True,
        )  # fmt: skip
        payload = {**with_params(rng, payload, kinds), "model": "llama"}
        label = f"a tiny random llama model, {engine_checks.describe_options(payload)}"
        return [
            Case(f"{label}; requests side by side, with a preemption", payload),
            Case(f"{label}; one request after the other", alone(payload)),
        ]

    return Check(
        "engine-tiny", "inside the engine, a tiny random model: the reference's tokens",
        RUN, cases, in_engine, look=look, fingerprint=fingerprint,
        needs=("tiny",), last=True, limit_s=20.0,
    )  # fmt: skip


def smollm2_check(kinds: Sequence[Params] = DRAWN) -> Check:
    """The function inside the engine, with SmolLM2."""

    def cases(rng: random.Random) -> list[Case]:
        payload = eventful(
            rng, vocab_size=40_000, num_requests=4, longest=32, num_blocks=14, budget=24
        )
        payload = {**with_params(rng, payload, kinds), "model": REAL}
        label = f"SmolLM2, {engine_checks.describe_options(payload)}"
        return [Case(label, payload)]

    return Check(
        "engine-smollm2", "inside the engine, SmolLM2: the reference's tokens",
        RUN, cases, in_engine, look=look, fingerprint=fingerprint,
        needs=("smollm2",), last=True, limit_s=60.0,
    )  # fmt: skip
