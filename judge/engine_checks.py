"""Owns the checks inside the engine: their workloads, and the comparison of tokens and traces.

The runs themselves are `engine_run`'s. Contract: the reference's tokens, and a trace that breaks no
invariant. Policy: the reference's schedule, step by step.
"""

from __future__ import annotations

import random
from typing import Any

from judge.api import Case, Check, Difference
from judge.compare import about_raised, show
from judge.wire import Raised


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


def tokens_and_trace(case: Case, expected: Any, got: Any) -> Difference | None:
    """Contract: every request gets the reference's tokens, and the trace breaks no invariant."""
    place = f"inside the engine: {case.label}"
    if isinstance(got, Raised):
        lines = (place, f"the engine stopped: {show(got)}", *about_raised(got))
        return Difference(lines, "error", got.frames)
    problem = broken_invariant(got["trace"], case.payload) or _leak(got["free"], case.payload)
    if problem is not None:
        return Difference((place, *problem))
    for request_id, (tokens, reason) in expected["outputs"].items():
        have = got["outputs"].get(request_id)
        if have is None:
            return Difference((place, f"{request_id} never ended"))
        if have == [tokens, reason]:
            continue
        for number, (want, found) in enumerate(zip(tokens, have[0], strict=False)):
            if want != found:
                position = prompt_length(case.payload, request_id) + number
                return Difference(
                    (
                        place,
                        f"{request_id}, output {number} (position {position}): expected {want}, "
                        f"got {found}",
                        f"the first {number} outputs agree",
                    )
                )
        return Difference(
            (
                place,
                f"{request_id}: expected {len(tokens)} tokens and reason {reason}, got "
                f"{len(have[0])} and {have[1]}",
            )
        )
    return None


def same_schedule(case: Case, expected: Any, got: Any) -> Difference | None:
    """Policy: step by step the schedule, hits, preemptions and free blocks of the reference."""
    place = f"inside the engine: {case.label}"
    if isinstance(got, Raised):
        return Difference((place, f"the engine stopped: {show(got)}"), "error", got.frames)
    for want, have in zip(expected["trace"], got["trace"], strict=False):
        for name in ("scheduled", "cached", "preempted", "free_blocks"):
            if want[name] != have[name]:
                lines = (
                    f"step {want['step']}, {name}:",
                    f"expected {want[name]}, got {have[name]}",
                )
                return Difference((place, *lines))
    if len(expected["trace"]) != len(got["trace"]):
        steps = f"expected {len(expected['trace'])} steps, got {len(got['trace'])}"
        return Difference((place, steps))
    return None


def broken_invariant(trace: list[Any], payload: Any) -> tuple[str, ...] | None:
    """What no legal schedule does, seen in the trace alone; None if all is well."""
    size, blocks = payload["options"]["block_size"], payload["options"]["num_blocks"]
    for record in trace:
        place = f"step {record['step']}"
        tables = record["block_tables"]
        for request_id, table in tables.items():
            strangers = [b for b in table if type(b) is not int or not 0 <= b < blocks]
            if strangers:
                return (f"{place}: {request_id} holds the block {show(strangers[0])}, outside 0 to "
                        f"{blocks - 1}",)  # fmt: skip
            if len(set(table)) < len(table):
                return (f"{place}: the table of {request_id} holds a block twice: {table}",)
            tokens = record["computed"][request_id] + record["scheduled"][request_id]
            if len(table) * size < tokens:
                return (f"{place}: {request_id} has {tokens} tokens in {len(table)} blocks",)
        shared = _written_by_two(record, size)
        if shared is not None:
            return (f"{place}: {shared}",)
        used = len({b for table in tables.values() for b in table})
        if record["free_blocks"] + used > blocks:
            return (f"{place}: {record['free_blocks']} free and {used} used blocks of {blocks}",)
    return None


def _leak(free: Any, payload: Any) -> tuple[str, ...] | None:
    blocks = payload["options"]["num_blocks"]
    if free == blocks:
        return None
    return (f"after the last request {show(free)} of {blocks} blocks are free",)


def _written_by_two(record: Any, size: int) -> str | None:
    """A block that two requests write in one step, which would mix their keys and values."""
    writers: dict[int, str] = {}
    for request_id, table in record["block_tables"].items():
        start = record["computed"][request_id]
        end = start + record["scheduled"][request_id]
        for index in range(start // size, -(-end // size)):
            other = writers.setdefault(table[index], request_id)
            if other != request_id:
                return f"{other} and {request_id} both write into block {table[index]}"
    return None


def prompt_length(payload: Any, request_id: str) -> int:
    return next(len(r["prompt"]) for r in payload["requests"] if r["id"] == request_id)


def control_plane_checks() -> tuple[Check, Check]:
    """Contract and policy of a control-plane part inside the engine, without a model."""
    place = "judge.engine_run:control_plane"
    return (
        Check("engine", "inside the engine, with made-up tokens", place, control_workloads,
              tokens_and_trace, last=True),
        Check("engine-schedule", "inside the engine: the reference's schedule, step by step", place,
              control_workloads, same_schedule, kind="policy", last=True),
    )  # fmt: skip


def tiny_check(**options: Any) -> Check:
    """The part inside the whole engine, with a tiny random model."""

    def cases(rng: random.Random) -> list[Case]:
        payload = workload(
            rng, vocab_size=64, num_requests=5, longest=24, num_blocks=14, budget=12, **options
        )
        return [Case(f"a tiny random model, {describe_options(payload)}", payload)]

    return Check(
        "engine-tiny", "inside the engine, with a tiny random model",
        "judge.engine_run:tiny_engine", cases, tokens_and_trace,
        needs=("tiny",), last=True, limit_s=20.0,
    )  # fmt: skip


def smollm2_check(**options: Any) -> Check:
    """The part inside the whole engine, with SmolLM2."""

    def cases(rng: random.Random) -> list[Case]:
        payload = workload(
            rng, vocab_size=40_000, num_requests=3, longest=40, num_blocks=24, budget=32, **options
        )
        return [Case(f"SmolLM2, {describe_options(payload)}", payload)]

    return Check(
        "engine-smollm2", "inside the engine, with SmolLM2",
        "judge.engine_run:smollm2_engine", cases, tokens_and_trace,
        needs=("smollm2",), last=True, limit_s=60.0,
    )  # fmt: skip


def control_workloads(rng: random.Random) -> list[Case]:
    """Workloads short of blocks, with and without prefix cache, chunks and aborts."""
    cases = []
    for number in range(4):
        payload = workload(
            rng,
            vocab_size=50,
            num_requests=8,
            longest=24,
            num_blocks=rng.randint(10, 16),
            budget=rng.choice([5, 16, 64]),
            aborts=number % 2 == 1,
            enable_prefix_caching=number < 3,
            debug=True,
        )
        cases.append(Case(describe_options(payload), payload))
    return cases
