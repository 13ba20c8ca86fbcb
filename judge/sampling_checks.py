"""Owns the checks of sampling functions inside the engine: workloads with random requests."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from judge import engine_checks, sampling_logprobs
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
PENALIZED: tuple[Params, ...] = (
    {"repetition_penalty": 1.3},
    {"temperature": 0.9, "presence_penalty": 0.8},
    {},
    {"frequency_penalty": 0.7, "presence_penalty": 0.4},
    {"temperature": 1.2, "repetition_penalty": 1.5, "frequency_penalty": -0.5, "top_p": 0.9},
    {"repetition_penalty": 0.8, "logit_bias": {7: 2.0}},
)
TOLD: tuple[Params, ...] = (
    {"logprobs": 2},
    {"temperature": 1.0, "top_k": 20, "logprobs": 5},
    {},
    {"temperature": 1.2, "presence_penalty": 0.8, "logprobs": 0},
    {"repetition_penalty": 1.5, "logprobs": 1},
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


def tiny_cases(rng: random.Random, kinds: Sequence[Params]) -> list[Case]:
    """Greedy and random requests side by side, then the same ones one by one."""
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


def smollm2_cases(rng: random.Random, kinds: Sequence[Params]) -> list[Case]:
    """A workload for SmolLM2."""
    payload = eventful(rng, vocab_size=40_000, num_requests=4, longest=32, num_blocks=14, budget=24)
    payload = {**with_params(rng, payload, kinds), "model": REAL}
    return [Case(f"SmolLM2, {engine_checks.describe_options(payload)}", payload)]


def engine_check(kinds: Sequence[Params] = DRAWN) -> Check:
    """The function inside the engine, with a tiny random model."""
    return Check(
        "engine-tiny", "inside the engine, a tiny random model: the reference's tokens",
        RUN, lambda rng: tiny_cases(rng, kinds), in_engine, look=look, fingerprint=fingerprint,
        needs=("tiny",), last=True, limit_s=20.0,
    )  # fmt: skip


def smollm2_check(kinds: Sequence[Params] = DRAWN) -> Check:
    """The function inside the engine, with SmolLM2."""
    return Check(
        "engine-smollm2", "inside the engine, SmolLM2: the reference's tokens",
        RUN, lambda rng: smollm2_cases(rng, kinds), in_engine, look=look, fingerprint=fingerprint,
        needs=("smollm2",), last=True, limit_s=60.0,
    )  # fmt: skip


def told_check(model: str, kinds: Sequence[Params] = TOLD) -> Check:
    """Log probabilities of requests inside the engine; `model` is "tiny" or "smollm2"."""
    cases, name, limit = (
        (tiny_cases, "a tiny random model", 20.0) if model == "tiny" else
        (smollm2_cases, "SmolLM2", 60.0)
    )  # fmt: skip
    return Check(
        f"engine-{model}", f"inside the engine, {name}: the reference's log probabilities",
        "judge.sampling_calls:with_logprobs", lambda rng: cases(rng, kinds),
        sampling_logprobs.in_engine, look=sampling_logprobs.look, fingerprint=told_fingerprint,
        needs=(model,), last=True, limit_s=limit,
    )  # fmt: skip


def told_fingerprint(answer: Any) -> Any:
    """Tokens, trace and log probabilities."""
    found = fingerprint(answer)
    return {**found, "logprobs": answer.get("logprobs")} if isinstance(answer, dict) else found
