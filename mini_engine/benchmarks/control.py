"""Measures the control plane alone: host time for requests, blocks and decisions, without a model.

Run `python -m mini_engine.benchmarks.control`. Every figure is processor time, the best of several
rounds in which the contenders take turns, so a busy machine changes it little; quote the ratios.
Prompts are random with a fixed seed.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import platform
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mini_engine.config import EngineConfig, SamplingParams
from mini_engine.control.block_pool import BlockPool
from mini_engine.control.prefix_cache import PrefixCache
from mini_engine.control.request import Request
from mini_engine.control.scheduler import Scheduler

BLOCK_SIZE = 16
TOKEN = 7  # what every request samples
PARAMS = SamplingParams(max_tokens=1_000_000)


@dataclass(frozen=True)
class Sizes:
    """How much is measured. `steps` is a multiple of the block size, so all borders are counted."""

    decodes: int = 256
    prompt: int = 512
    cached_prompt: int = 32_768
    prompts: tuple[int, ...] = (512, 4_096, 32_768)
    pools: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    steps: int = 64
    rounds: int = 12


class Control:
    """A scheduler, its cache and its pool; `num_hashed` counts blocks hashed if that is wanted."""

    def __init__(self, num_blocks: int, *, count_hashes: bool = False) -> None:
        config = EngineConfig(
            num_blocks=num_blocks,
            block_size=BLOCK_SIZE,
            max_model_len=10_000_000,
            max_num_batched_tokens=65_536,
            max_num_seqs=1_024,
        )
        hash_function = self._counting_hash if count_hashes else hash
        pool = BlockPool(num_blocks)
        cache = PrefixCache(pool, BLOCK_SIZE, hash_function=hash_function)
        self.scheduler = Scheduler(config, cache)
        self.num_hashed = 0

    def _counting_hash(self, key: tuple[int, tuple[int, ...], str | None]) -> int:
        self.num_hashed += 1
        return hash(key)

    def add(self, name: str, prompt: list[int]) -> None:
        """Queue a request that never ends by itself."""
        self.scheduler.add(Request(name, prompt, PARAMS))

    def step(self) -> dict[str, int]:
        """Schedule and update as the engine does; returns the prefix hits of the admitted."""
        schedule = self.scheduler.schedule()
        self.scheduler.update(schedule, {c.request.request_id: TOKEN for c in schedule.chunks})
        return schedule.cached

    def time_steps(self, steps: int) -> float:
        """Milliseconds a step, schedule and update together; every request must be decoding."""
        scheduler = self.scheduler
        sampled = {request.request_id: TOKEN for request in scheduler.running}
        start = time.process_time()
        for _ in range(steps):
            scheduler.update(scheduler.schedule(), sampled)
        return (time.process_time() - start) / steps * 1e3

    def hashes_of_steps(self, steps: int) -> float:
        """Blocks hashed a step."""
        before = self.num_hashed
        for _ in range(steps):
            self.step()
        return (self.num_hashed - before) / steps


Measure = Callable[[Control, int], float]


def random_prompt(rng: random.Random, length: int) -> list[int]:
    """Token ids out of 100,000; every call makes its own int objects, as a tokenizer does."""
    return [rng.randrange(100_000) for _ in range(length)]


def decoding(count: int, prompt: int, num_blocks: int, *, count_hashes: bool = False) -> Control:
    """`count` requests whose prompts are computed; each has a last block of its own to fill."""
    rng = random.Random(0)
    control = Control(num_blocks, count_hashes=count_hashes)
    for number in range(count):
        control.add(f"r{number}", random_prompt(rng, prompt))
        while control.scheduler.waiting or not control.scheduler.running[-1].output_token_ids:
            control.step()
    return control


def best_in_turns(calls: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The smallest result of each call over so many rounds; the first round warms up."""
    results: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds + 1):
        for name, call in calls.items():
            results[name].append(call())
    return {name: min(values[1:]) for name, values in results.items()}


def measure_decodes(sizes: Sizes) -> dict[str, float]:
    """Milliseconds of a step in which every request decodes."""
    blocks = sizes.decodes * (sizes.prompt + sizes.steps * (sizes.rounds + 2)) // BLOCK_SIZE + 256
    control = decoding(sizes.decodes, sizes.prompt, blocks)
    return best_in_turns({"ms": lambda: control.time_steps(sizes.steps)}, sizes.rounds)


def measure_cached_prompt(sizes: Sizes) -> dict[str, float]:
    """Milliseconds from the submission of a prompt that is cached to its admission."""
    control = Control(4 * sizes.cached_prompt // BLOCK_SIZE)
    control.add("first", random_prompt(random.Random(0), sizes.cached_prompt))
    control.step()
    control.scheduler.abort("first")

    def again() -> float:
        prompt = random_prompt(random.Random(0), sizes.cached_prompt)
        start = time.process_time()
        control.add("again", prompt)
        schedule = control.scheduler.schedule()
        elapsed = time.process_time() - start
        if schedule.cached != {"again": (sizes.cached_prompt - 1) // BLOCK_SIZE * BLOCK_SIZE}:
            raise AssertionError(f"the prompt was not cached: {schedule.cached}")
        control.scheduler.update(schedule, {"again": TOKEN})
        control.scheduler.abort("again")
        return elapsed * 1e3

    return best_in_turns({"ms": again}, sizes.rounds)


def measure_growth(controls: dict[str, Control], sizes: Sizes) -> dict[str, Any]:
    """Milliseconds of a decode step for each, and their ratio to the first."""
    calls = {name: (lambda c=c: c.time_steps(sizes.steps)) for name, c in controls.items()}
    ms = best_in_turns(calls, sizes.rounds)
    first = next(iter(ms.values()))
    return {"ms": ms, "ratio": {name: value / first for name, value in ms.items()}}


def by_prompt(sizes: Sizes) -> dict[str, Any]:
    """The cost of a decode step, for prompts of several lengths."""
    new = sizes.steps * (sizes.rounds + 2)
    count = max(1, sizes.decodes // 16)
    controls = {
        f"{prompt:,}": decoding(count, prompt, count * (prompt + new) // BLOCK_SIZE + 256)
        for prompt in sizes.prompts
    }
    return measure_growth(controls, sizes)


def by_pool(sizes: Sizes) -> dict[str, Any]:
    """The cost of a decode step, for pools of several sizes."""
    count = max(1, sizes.decodes // 32)
    return measure_growth({f"{n:,}": decoding(count, 128, n) for n in sizes.pools}, sizes)


def measure_blocked_head(sizes: Sizes) -> dict[str, Any]:
    """A long prompt, part of it cached, arrives at a pool that has no room for the rest.

    `arrives` is the step that considers it first, `waits` a later one, `no queue` a step without
    it: milliseconds, and blocks hashed per step.
    """
    hit = sizes.cached_prompt // 2
    rest = hit + sizes.steps * (sizes.rounds + 3)  # always more than what is free
    rng = random.Random(0)
    prompt = random_prompt(rng, hit + rest)

    def begin(count_hashes: bool) -> Control:
        control = Control((hit + rest) // BLOCK_SIZE, count_hashes=count_hashes)
        control.add("decode", prompt[:hit])
        control.step()
        return control

    def rounds_of(control: Control, measure: Measure) -> dict[str, Callable[[], float]]:
        def arrives() -> float:
            control.add("head", prompt)
            return measure(control, 1)

        def waits() -> float:
            if len(control.scheduler.waiting) != 1:
                raise AssertionError("the head of the queue was admitted")
            return measure(control, sizes.steps)

        def without() -> float:
            control.scheduler.abort("head")
            return measure(control, sizes.steps)

        return {"arrives": arrives, "waits": waits, "no queue": without}

    return {
        "ms": best_in_turns(rounds_of(begin(False), Control.time_steps), sizes.rounds),
        "hashed": best_in_turns(rounds_of(begin(True), Control.hashes_of_steps), sizes.rounds),
    }


def measure(sizes: Sizes) -> dict[str, Any]:
    """All figures."""
    return {
        "decode_step": measure_decodes(sizes),
        "cached_prompt": measure_cached_prompt(sizes),
        "by_prompt": by_prompt(sizes),
        "by_pool": by_pool(sizes),
        "blocked_head": measure_blocked_head(sizes),
    }


def show(figures: dict[str, Any], sizes: Sizes) -> None:
    """Print the figures as text."""
    print(f"step of {sizes.decodes} decodes{figures['decode_step']['ms']:>24.3f} ms")
    print(
        f"cached prompt of {sizes.cached_prompt:,} tokens{figures['cached_prompt']['ms']:>15.3f} ms"
    )
    for title, key in (("prompt of", "by_prompt"), ("blocks in the pool", "by_pool")):
        print(f"decode step, by {title}")
        for name, ms in figures[key]["ms"].items():
            print(f"  {name:>12}{ms:>30.4f} ms   {figures[key]['ratio'][name]:.2f} times the first")
    print("a blocked head of the queue")
    head = figures["blocked_head"]
    for name, ms in head["ms"].items():
        print(f"  {name:>12}{ms:>30.4f} ms   {head['hashed'][name]:.2f} blocks hashed a step")


def main(argv: Sequence[str] | None = None, sizes: Sizes | None = None) -> None:
    """Print the figures and, with --json, keep them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=Sizes.rounds, help="the best one is shown")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    args = parser.parse_args(argv)
    sizes = sizes or Sizes(rounds=args.rounds)
    figures = measure(sizes)
    show(figures, sizes)
    if args.json:
        result = {
            "command": "python -m mini_engine.benchmarks.control",
            "date": datetime.date.today().isoformat(),
            "machine": platform.machine(),
            "python": platform.python_version(),
            "sizes": dataclasses.asdict(sizes),
            "figures": figures,
        }
        args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
