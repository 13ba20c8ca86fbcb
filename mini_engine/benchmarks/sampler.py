"""Owns the sampler's share of a decode step: `python -m mini_engine.benchmarks.sampler`.

Serves a batch of requests on the real model and times, in every step, the whole forward pass with
sampling and the sampler alone, for several kinds of parameters in turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mini_engine.config import DEFAULT_MODEL
from mini_engine.engine import LLMEngine
from mini_engine.sampling_params import SamplingParams

KINDS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "temperature 1": {"temperature": 1.0},
    "temperature 0.8, top-p 0.95": {"temperature": 0.8, "top_p": 0.95},
    "temperature 1, top-k 50, min-p 0.05": {"temperature": 1.0, "top_k": 50, "min_p": 0.05},
    "greedy, all penalties": {
        "repetition_penalty": 1.1, "presence_penalty": 0.5, "frequency_penalty": 0.5,
    },
}  # fmt: skip


class TimedSampler:
    """Passes calls on and notes how long they took."""

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler
        self.seconds: list[float] = []

    def __call__(self, logits: Any, requests: Sequence[Any]) -> list[int]:
        began = time.perf_counter()
        token_ids: list[int] = self._sampler(logits, requests)
        self.seconds.append(time.perf_counter() - began)
        return token_ids


def measure(engine: LLMEngine, batch: int, steps: int, **fields: Any) -> tuple[float, float]:
    """Medians of (the step's forward pass with sampling, sampling alone), in seconds."""
    engine.runner.sampler = timed = TimedSampler(engine.runner.sampler)
    try:
        params = SamplingParams(max_tokens=steps + 1, ignore_eos=True, seed=1, **fields)
        prompt = engine.encode("The history of the city begins with a small harbor, where")
        engine.generate([[*prompt, number] for number in range(100, 100 + batch)], params)
    finally:
        engine.runner.sampler = timed._sampler
    passes = [record.times.run for record in engine.trace[-steps:] if record.times is not None]
    return statistics.median(passes), statistics.median(timed.seconds[-steps:])


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; returns 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    args = parser.parse_args(argv)
    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    with LLMEngine(args.model, max_model_len=256, num_blocks=args.batch * 8) as engine:
        for _ in range(args.rounds):
            for kind, fields in KINDS.items():
                found[kind].append(measure(engine, args.batch, args.steps, **fields))
        vocab_size = engine.vocab_size
    print(f"{args.model}, batch {args.batch}, vocabulary {vocab_size}; milliseconds, medians")
    rows = {}
    for kind, pairs in found.items():
        step, sampling = (statistics.median(values) * 1e3 for values in zip(*pairs, strict=True))
        rows[kind] = {"step_ms": step, "sampling_ms": sampling, "share": sampling / step}
        print(f"{kind:<38} step {step:7.1f}   sampling {sampling:6.2f}   {sampling / step:5.1%}")
    if args.json:
        figures = {"batch": args.batch, "vocab_size": vocab_size, "kinds": rows}
        args.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
