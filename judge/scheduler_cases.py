"""Owns the scripts that schedulers are graded on: named ones, random ones, and vLLM's workloads."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from judge.api import Case
from judge.engine_run import MadeUpTokens

VOCAB = 30_000
RECORDED = Path(__file__).parent / "data" / "vllm_traces"
OPTIONS = ("block_size", "max_num_batched_tokens", "max_num_seqs", "max_model_len",
           "enable_prefix_caching", "enable_chunked_prefill", "policy",
           "long_prefill_token_threshold", "watermark")  # fmt: skip
Request = dict[str, Any]


def request(
    name: str, prompt: int | list[int], max_tokens: int, step: int = 0, **more: Any
) -> Request:
    """A request of a script; a prompt given as a length gets tokens of its own."""
    return {"id": name, "prompt": prompt, "max_tokens": max_tokens, "step": step, **more}


def script(
    rng: random.Random,
    label: str,
    requests: list[Request],
    *,
    aborts: Any = (),
    failures: Any = (),
    check: Any = False,
    **options: Any,
) -> Case:
    """A case for `scheduler_run`. Unless `options` say otherwise the pool is roomy, nothing is cut
    and no block gets a name.
    """
    settings: dict[str, Any] = {
        "block_size": 4, "num_blocks": 200, "max_model_len": 128, "max_num_seqs": 8,
        "max_num_batched_tokens": 128, "enable_prefix_caching": False,
    }  # fmt: skip
    payload = {
        "options": settings | options,
        "requests": [_filled(rng, number, one) for number, one in enumerate(requests)],
        "aborts": list(aborts),
        "failures": list(failures),
        "check": check,
        "token_seed": rng.randrange(10**6),
        "vocab_size": VOCAB,
    }
    return Case(label, payload)


def _filled(rng: random.Random, number: int, one: Request) -> Request:
    prompt = one["prompt"]
    if isinstance(prompt, int):
        prompt = [rng.randrange(VOCAB) for _ in range(prompt)]
    return {**one, "number": number, "prompt": prompt}


def stopping(case: Case, name: str, output: int) -> Case:
    """The case with a stop token: the one that the request will sample as that output, from 1."""
    payload = case.payload
    tokens = MadeUpTokens(payload["token_seed"], VOCAB)
    for one in payload["requests"]:
        if one["id"] == name:
            one["ends"] = [tokens.token(name, len(one["prompt"]) + output - 1)]
    return case


def random_script(
    rng: random.Random,
    *,
    count: int = 8,
    longest: int = 24,
    aborts: bool = False,
    failures: bool = False,
    priorities: int = 1,
    **options: Any,
) -> Case:
    """Requests of random sizes that arrive over time, many with a common beginning."""
    common = [rng.randrange(VOCAB) for _ in range(longest)]
    requests, ends = [], []
    for number in range(count):
        own = [rng.randrange(VOCAB) for _ in range(rng.randint(1, longest // 2))]
        step = rng.randrange(1 + count)
        requests.append(
            request(f"r{number}", common[: rng.randrange(longest // 2)] + own,
                    rng.randint(1, 12), step, priority=rng.randrange(priorities))
        )  # fmt: skip
        if aborts and rng.random() < 0.35:
            when = rng.choice(["before", "during"])
            ends.append([step + rng.randint(1, 6), f"r{number}", when])
    failed = sorted({rng.randint(1, 15) for _ in range(2)}) if failures else []
    case = script(rng, "", requests, aborts=ends, failures=failed,
                  max_model_len=longest + 16, **options)  # fmt: skip
    return Case(describe(case.payload), case.payload)


def describe(payload: Any) -> str:
    options = payload["options"]
    return (
        f"{len(payload['requests'])} requests, {options['num_blocks']} blocks of "
        f"{options['block_size']}, budget {options['max_num_batched_tokens']}, at most "
        f"{options['max_num_seqs']} run"
    )


def recorded(name: str) -> Case:
    """A workload that vLLM's own scheduler was given; what it did stays in the notes."""
    workload, trace = (
        json.loads((RECORDED / f"{kind}_{name}.json").read_text("utf-8"))
        for kind in ("workload", "trace")
    )
    requests, aborts = [], []
    for number, one in enumerate(workload["requests"]):
        requests.append(
            {
                "number": number,
                "id": one["id"],
                "prompt": one["prompt"],
                "output": one["output"],
                "max_tokens": one.get("max_tokens", len(one["output"])),
                "step": one["arrival_step"],
                "priority": one.get("priority", 0),
                "ends": one.get("stop_token_ids", []),
            }
        )
        for key, when in (("abort_at_step", "before"), ("abort_during_step", "during")):
            if key in one:
                aborts.append([one[key], one["id"], when])
    options = {key: workload[key] for key in OPTIONS if key in workload}
    options["num_blocks"] = workload["num_blocks"] - 1  # vLLM keeps block 0 for itself
    payload = {"options": options, "requests": requests, "aborts": aborts, "failures": [],
               "token_seed": 0, "vocab_size": VOCAB}  # fmt: skip
    return Case(workload["comment"], payload, {"vllm": trace["steps"]})
