"""Owns the checks of tensor functions inside the engine: workloads, and tokens compared.

Greedy tokens are compared exactly, except where the reference's own two best logits are so close that
the order of summation decides (the tie band): the rest of that request is then left out.
"""

from __future__ import annotations

import random
from typing import Any

from judge import engine_checks, engine_run
from judge.api import Case, Check, Difference
from judge.compare import about_raised, show
from judge.wire import Raised

RUN = "judge.tensor_engine:run"
TIE = 1e-3  # 20 times the largest difference of float32 logits between batchings, chunkings, caches
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


def tiny_check(*models: str) -> Check:
    """The function inside the engine, with tiny random models."""

    def cases(rng: random.Random) -> list[Case]:
        found = []
        for model in models:
            payload = eventful(
                rng, vocab_size=512, num_requests=5, longest=24, num_blocks=12, budget=12, debug=True
            )
            label = f"a tiny random {model} model, {engine_checks.describe_options(payload)}"
            found.append(Case(label, {**payload, "model": model}))
        return found

    return Check(
        "engine-tiny", "inside the engine, tiny random models: the reference's tokens",
        RUN, cases, same_tokens, needs=("tiny",), last=True, limit_s=20.0,
    )  # fmt: skip


def smollm2_check() -> Check:
    """The function inside the engine, with SmolLM2."""

    def cases(rng: random.Random) -> list[Case]:
        payload = eventful(
            rng, vocab_size=40_000, num_requests=4, longest=32, num_blocks=14, budget=24
        )
        label = f"SmolLM2, {engine_checks.describe_options(payload)}"
        return [Case(label, {**payload, "model": "smollm2"})]

    return Check(
        "engine-smollm2", "inside the engine, SmolLM2: the reference's tokens",
        RUN, cases, same_tokens, needs=("smollm2",), last=True, limit_s=60.0,
    )  # fmt: skip


def same_tokens(case: Case, expected: Any, got: Any) -> Difference | None:
    """Every request gets the reference's tokens, up to the first that lies in the tie band."""
    place = f"inside the engine: {case.label}"
    if isinstance(got, Raised):
        lines = (place, f"the engine stopped: {show(got)}", *about_raised(got))
        return Difference(lines, "error", got.frames)
    firsts = []
    for request_id, (tokens, reason) in expected["outputs"].items():
        have, have_reason = got["outputs"].get(request_id, ([], "never ended"))
        tops = expected["tops"].get(request_id, [])
        number = first_difference(tokens, have, tops)
        if number is None:
            if tokens == have and reason != have_reason:
                return Difference((place, f"{request_id} ended with {have_reason}, not {reason}"))
            continue
        step = sampling_step(expected["trace"], request_id, number)
        firsts.append((step, request_id, number, tokens, have, tops))
    if not firsts:
        return None
    step, request_id, number, tokens, have, tops = min(firsts, key=lambda first: first[:3])
    position = engine_checks.prompt_length(case.payload, request_id) + number
    theirs = got["tops"].get(request_id, [])
    words = pieces(case.payload["model"])
    record = next(record for record in expected["trace"] if record["step"] == step)
    lines = [
        place,
        f"{request_id}, output {number} (position {position}), sampled in step {step}: "
        f"{token_lines(tokens, have, number, words)}",
        *top_lines(tops, theirs, number, words),
        step_line(record, request_id),
        "no output before it differs, in any request",
    ]
    return Difference(tuple(line for line in lines if line))


def first_difference(tokens: Any, have: Any, tops: Any) -> int | None:
    """The first output that differs beyond the tie band, or None."""
    for number, want in enumerate(tokens):
        if number < len(have) and have[number] == want:
            continue
        tied = number < len(tops) and margin(tops[number]) < TIE
        return None if tied and number < len(have) else number
    return len(tokens) if len(have) > len(tokens) else None


def margin(top: Any) -> float:
    """How far the best logit leads the second."""
    first, second = top[1][:2]
    return float(first - second)


def token_lines(tokens: Any, have: Any, number: int, words: Any) -> str:
    want = words(tokens[number]) if number < len(tokens) else "no more token"
    found = words(have[number]) if number < len(have) else "none"
    return f"expected {want}, got {found}"


def top_lines(ours: Any, theirs: Any, number: int, words: Any) -> list[str]:
    """The best logits of both, and the margin."""
    lines = []
    for whose, tops in (("reference", ours), ("yours", theirs)):
        if number < len(tops):
            pairs = zip(*tops[number], strict=True)
            best = ", ".join(f"{words(token)} {logit:.3f}" for token, logit in pairs)
            lines.append(f"best logits, {whose + ':':<10} {best}")
    if number < len(ours):
        lines.append(f"margin {margin(ours[number]):.2f}, so this is no near tie")
    return lines


def step_line(record: Any, request_id: str) -> str:
    """What the engine did with that request, and beside it, in that step."""
    computed, count = record["computed"][request_id], record["scheduled"][request_id]
    kind = "1 token" if count == 1 else f"a chunk of {count} tokens"
    line = f"step {record['step']} computed {kind} of it, from position {computed} on"
    if record["cached"].get(request_id):
        line += f", after a prefix hit of {record['cached'][request_id]}"
    others = len(record["scheduled"]) - 1
    return line + (f"; {others} other requests ran beside it" if others else "")


def sampling_step(trace: Any, request_id: str, number: int) -> int:
    """The step in which a request got its output `number`."""
    steps = [record["step"] for record in trace if request_id in record["sampled"]]
    return int(steps[min(number, len(steps) - 1)])


def pieces(model: str) -> Any:
    """A function that shows a token id, with its text where the model has a tokenizer."""
    if model != "smollm2":
        return str
    from tokenizers import Tokenizer

    from mini_engine.config import DEFAULT_MODEL
    from mini_engine.text.checkpoint import find_model

    tokenizer = Tokenizer.from_file(str(find_model(DEFAULT_MODEL) / "tokenizer.json"))

    def show_token(token: Any) -> str:
        if type(token) is not int or not 0 <= token < tokenizer.get_vocab_size():
            return str(token)
        return f"{token} {tokenizer.decode([token], skip_special_tokens=False)!r}"

    return show_token
