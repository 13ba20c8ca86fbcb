"""Measures what the token budget does to users: a long prompt arrives while others decode.

Run `python -m mini_engine.benchmarks.budget --json assets/budget_sweep.json`. For each budget: the
long prompt's time to first token, and the gaps between tokens that the decodes feel until then.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import random
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mini_engine.config import DEFAULT_MODEL
from mini_engine.engine import LLMEngine
from mini_engine.latency import inter_token_latencies
from mini_engine.sampling_params import SamplingParams
from mini_engine.trace import StepRecord

BUDGETS = (8, 16, 32, 64, 128, 256, 512)
DECODES, PROMPT, ROUNDS = 4, 480, 3


def arrive_among_decodes(
    model: Any, budget: int, *, decodes: int = DECODES, prompt: int = PROMPT, seed: int = 0
) -> dict[str, float]:
    """Seconds: "ttft" of the prompt, "median" and "longest" gap of the decodes, and "steps".

    The decodes run alone for three steps, then the prompt of `prompt` random tokens arrives.
    """
    rng = random.Random(seed)
    with LLMEngine(
        model, num_blocks=2048 // 16, max_num_batched_tokens=budget, enable_prefix_caching=False
    ) as engine:
        assert engine.vocab_size is not None
        tokens = [rng.randrange(10, engine.vocab_size) for _ in range(prompt)]
        ids = [engine.add_request([n + 10], SamplingParams(400, ignore_eos=True))
               for n in range(decodes)]  # fmt: skip
        for _ in range(4):
            engine.step()
        before = len(engine.trace) - 1  # the last token before the prompt comes
        long = engine.add_request(tokens, SamplingParams(1))
        while long not in engine.trace[-1].sampled:
            engine.step()
        return _felt(engine.trace[before:], ids[0])


def _felt(records: Sequence[StepRecord], decode: str) -> dict[str, float]:
    times = [r.times for r in records if r.times]
    gaps = inter_token_latencies(
        [t.end for r, t in zip(records, times, strict=True) if decode in r.sampled]
    )
    return {
        "ttft": times[-1].end - times[1].start,
        "median": statistics.median(gaps),
        "longest": max(gaps),
        "steps": len(records) - 1,
    }


def sweep(model: Any, budgets: Sequence[int] = BUDGETS, rounds: int = ROUNDS) -> list[Any]:
    """A row for each budget: medians over `rounds`, after one round that warms up."""
    found: dict[int, list[dict[str, float]]] = {budget: [] for budget in budgets}
    for number in range(rounds + 1):
        for budget in budgets:  # in turns, so that a busy machine is busy for all alike
            felt = arrive_among_decodes(model, budget)
            if number:
                found[budget].append(felt)
    return [
        {"budget": budget}
        | {key: round(statistics.median(f[key] for f in felt), 4) for key in felt[0]}
        for budget, felt in found.items()
    ]


def main(argv: Sequence[str] | None = None) -> None:
    """Print a table and, with --json, keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    args = parser.parse_args(argv)
    import torch

    from mini_engine.assemble import load_model

    model, _ = load_model(args.model, torch.device("cpu"), torch.float32)
    rows = sweep(model, rounds=args.rounds)
    for row in rows:
        print("  ".join(f"{key} {value:g}" for key, value in row.items()))
    if args.json:
        result = {
            "command": "python -m mini_engine.benchmarks.budget --json assets/budget_sweep.json",
            "date": datetime.date.today().isoformat(),
            "machine": f"{platform.machine()}, {torch.get_num_threads()} threads",
            "torch": torch.__version__,
            "decodes": DECODES,
            "prompt": PROMPT,
            "rows": rows,
        }
        args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
