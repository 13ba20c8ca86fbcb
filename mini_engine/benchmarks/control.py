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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mini_engine.benchmarks.control_contenders import BLOCK_SIZE, Control, VLLMControl, find_vllm

Measure = Callable[[Control, int], float]


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


def measure_decodes(sizes: Sizes, vllm: bool) -> dict[str, float]:
    """Milliseconds of a step in which every request decodes."""
    blocks = sizes.decodes * (sizes.prompt + sizes.steps * (sizes.rounds + 2)) // BLOCK_SIZE + 256
    control = decoding(sizes.decodes, sizes.prompt, blocks)
    calls = {"mini_engine": lambda: control.time_steps(sizes.steps)}
    if vllm:
        peer, rng = VLLMControl(blocks), random.Random(0)
        for number in range(sizes.decodes):
            peer.add(f"r{number}", random_prompt(rng, sizes.prompt))
        peer.time_steps(1 + sizes.decodes * sizes.prompt // 65_536)
        calls["vllm"] = lambda: peer.time_steps(sizes.steps)
    return best_in_turns(calls, sizes.rounds)


def measure_cached_prompt(sizes: Sizes, vllm: bool) -> dict[str, float]:
    """Milliseconds from the submission of a prompt that is cached to its admission."""
    blocks = 4 * sizes.cached_prompt // BLOCK_SIZE

    def prompt() -> list[int]:
        return random_prompt(random.Random(0), sizes.cached_prompt)

    control = Control(blocks)
    control.add("first", prompt())
    control.step()
    control.scheduler.abort("first")
    calls = {"mini_engine": lambda: control.time_admission("again", prompt())}
    if vllm:
        peer = VLLMControl(blocks)
        peer.add("first", prompt())
        peer.time_steps(1)
        peer.abort("first")
        calls["vllm"] = lambda: peer.time_admission("again", prompt())
    return best_in_turns(calls, sizes.rounds)


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


def measure(sizes: Sizes, vllm: bool) -> dict[str, Any]:
    """All figures."""
    return {
        "decode_step": measure_decodes(sizes, vllm),
        "cached_prompt": measure_cached_prompt(sizes, vllm),
        "by_prompt": by_prompt(sizes),
        "by_pool": by_pool(sizes),
        "blocked_head": measure_blocked_head(sizes),
    }


def show(figures: dict[str, Any], sizes: Sizes) -> None:
    """Print the figures as text."""
    for title, key in (
        (f"step of {sizes.decodes} decodes", "decode_step"),
        (f"cached prompt of {sizes.cached_prompt:,} tokens", "cached_prompt"),
    ):
        ours, peer = figures[key]["mini_engine"], figures[key].get("vllm")
        other = f"vllm {peer:.3f} ms, {peer / ours:.2f} times ours" if peer else "vllm not measured"
        print(f"{title:<34}{ours:>10.4f} ms   {other}")
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
    parser.add_argument(
        "--vllm",
        nargs="+",
        type=Path,
        metavar="FOLDER",
        help="measure vLLM's scheduler as well; it and what it needs are imported from there",
    )
    args = parser.parse_args(argv)
    try:
        version = find_vllm(args.vllm) if args.vllm else "not measured"
    except FileNotFoundError as error:
        parser.error(str(error))
    sizes = sizes or Sizes(rounds=args.rounds)
    figures = measure(sizes, vllm=bool(args.vllm))
    show(figures, sizes)
    if args.json:
        result = {
            "command": "python -m mini_engine.benchmarks.control",
            "date": datetime.date.today().isoformat(),
            "machine": platform.machine(),
            "python": platform.python_version(),
            "vllm": version,
            "sizes": dataclasses.asdict(sizes),
            "figures": figures,
        }
        args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
