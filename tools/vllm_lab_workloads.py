"""Owns the random workloads on which mini_engine's schedules are compared with vLLM's.

Each follows from its number. Sizes are small and pools tight, so that chunks, prefix hits,
preemptions, aborts and refusals all happen. Left out is what SEMANTICS differs in on purpose:
prompts that can't fit the pool, and requests that outgrow it.
"""

from __future__ import annotations

import random
from typing import Any

COUNT = 500
SEED = 8
Json = dict[str, Any]


def make_workloads(count: int = COUNT) -> list[Json]:
    """The first `count` workloads."""
    return [make_workload(number) for number in range(count)]


def make_workload(number: int) -> Json:
    """One workload, in the format of tests/data/vllm_traces."""
    rng = random.Random(f"vllm {SEED} {number}")
    block_size, usable = rng.choice([1, 2, 3, 4, 8]), rng.randint(3, 24)
    slots = block_size * usable
    longest = rng.choice([slots + 9, max(4, slots), rng.randint(4, slots + 4)])
    seqs = rng.randint(1, 6)
    work: Json = {
        "name": f"random_{number:03}",
        "block_size": block_size,
        "num_blocks": usable + 1,
        "max_num_batched_tokens": max(seqs, rng.choice([2, 3, 5, 8, 13, 40])),
        "max_num_seqs": seqs,
        "max_model_len": longest,
        "enable_prefix_caching": rng.random() < 0.8,
        "enable_chunked_prefill": rng.random() < 0.75,
        "policy": rng.choice(["fcfs", "priority"]),
        "watermark": _watermark(rng, usable),
    }
    if not work["enable_chunked_prefill"]:
        work["max_num_batched_tokens"] = max(work["max_num_batched_tokens"], longest)
    elif rng.random() < 0.4:
        work["long_prefill_token_threshold"] = min(rng.randint(1, 9), longest)
    stems = [[rng.randrange(3) for _ in range(slots)] for _ in range(2)]
    work["requests"] = [
        _make_request(rng, f"r{i}", rng.choice(stems), longest, slots)
        for i in range(rng.randint(2, 12))
    ]
    return work


def _watermark(rng: random.Random, usable: int) -> float:
    """A share for which it makes no difference whether vLLM's reserved block is counted."""
    share = rng.choice([0.0, 0.0, 0.1, 0.25])
    return share if int(share * usable) == int(share * (usable + 1)) else 0.0


def _make_request(rng: random.Random, name: str, stem: list[int], longest: int, slots: int) -> Json:
    refused = rng.random() < 0.03  # its prompt leaves no room for an output
    most = min(longest - 1, slots)
    length = longest + rng.randint(0, 2) if refused else rng.randint(1, max(1, most))
    if not refused and rng.random() < 0.6:
        length = max(1, length // rng.choice([2, 3, 4]))
    shared = rng.randint(0, min(length, len(stem)))
    prompt = stem[:shared] + [rng.randrange(3) for _ in range(length - shared)]
    max_tokens = rng.randint(1, 24)
    if longest > slots:  # then only max_tokens keeps it from outgrowing the pool
        max_tokens = min(max_tokens, max(1, slots + 1 - length))
    one: Json = {
        "id": name,
        "arrival_step": rng.randint(0, 14),
        "prompt": prompt,
        "output": [rng.randrange(3) for _ in range(max_tokens)],
        "priority": rng.randint(0, 2),
    }
    if rng.random() < 0.2:
        one["stop_token_ids"] = [2]
    if rng.random() < 0.2:
        one["cache_salt"] = rng.choice(["x", "y"])
    if rng.random() < 0.2:
        one[rng.choice(["abort_at_step", "abort_during_step"])] = rng.randint(0, 25)
    return one


def make_exceptions() -> dict[str, Json]:
    """Workloads on which the two differ on purpose, by what it is about."""
    sizes = {
        "block_size": 4,
        "num_blocks": 4,
        "max_num_batched_tokens": 64,
        "max_num_seqs": 4,
        "max_model_len": 100,
        "enable_prefix_caching": True,
        "enable_chunked_prefill": True,
        "policy": "fcfs",
    }
    return {
        "a prompt that can never fit": sizes | {"requests": [_plain("long", 13, 1)]},
        "a request that outgrows the pool": sizes | {"requests": [_plain("growing", 7, 50)]},
        "the watermark": sizes
        | {
            "num_blocks": 8,
            "watermark": 0.25,
            "requests": [_plain("first", 8, 3), _plain("second", 15, 1)],
        },
    }


def _plain(name: str, prompt: int, outputs: int) -> Json:
    first = 1000 * len(name)  # no two share a prefix
    return {
        "id": name,
        "arrival_step": 0,
        "prompt": list(range(first, first + prompt)),
        "output": list(range(1, outputs + 1)),
    }
