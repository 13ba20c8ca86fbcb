"""Measures batches of requests from start to end: mini_engine against transformers, in one run.

    python -m mini_engine.benchmarks.offline
    python -m mini_engine.benchmarks.offline --workload mixed alone --dtype float32 bfloat16

The contenders take turns and each figure is a median, so a busy machine is busy for all alike;
quote the ratios. Beside them stands which share of the machine's own limits the engine reached.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from mini_engine.benchmarks.contenders import MiniEngine, Serve, generate_batch, padded_generate
from mini_engine.benchmarks.limits import Limits, measure_limits, reached
from mini_engine.benchmarks.workloads import WORKLOADS, Prompts, Workload, make_workload
from mini_engine.config import DEFAULT_MODEL, DTYPES
from mini_engine.text.checkpoint import find_model

OURS, UNCACHED = "mini_engine", "mini_engine without prefix cache"
PEERS = ("generate", "generate_batch")


def make_contenders(
    folder: Path, workload: Workload, dtype: str, peer: Any, without: Sequence[str]
) -> dict[str, Serve]:
    """mini_engine first; `peer` is the same model, loaded by transformers."""
    contenders: dict[str, Serve] = {OURS: MiniEngine(folder, dtype, workload.longest)}
    if workload.name == "shared":
        contenders[UNCACHED] = MiniEngine(folder, dtype, workload.longest, prefix_caching=False)
    if "generate" not in without:
        contenders["generate"] = padded_generate(peer)
    if "generate_batch" not in without:
        contenders["generate_batch"] = generate_batch(peer)
    return contenders


def measure(contenders: Mapping[str, Serve], workload: Workload, rounds: int) -> dict[str, Any]:
    """Median tokens per second of each contender, and of the first one over each other.

    Raises ValueError if an answer has another length than asked for.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    equal: dict[str, int] = {}
    first = next(iter(contenders))
    reference: Prompts = []
    for number in range(rounds + 1):  # the first round warms up
        for name, serve in contenders.items():
            began = time.perf_counter()
            answers = serve(workload)
            elapsed = time.perf_counter() - began
            wrong = [len(answer) for answer in answers if len(answer) != workload.new_tokens]
            if wrong or len(answers) != len(workload.prompts):
                raise ValueError(
                    f"{name} gave {len(answers)} answers, lengths {wrong} not as asked"
                )
            if name == first:
                reference = answers
            equal[name] = sum(a == r for a, r in zip(answers, reference, strict=True))
            if number:
                seconds[name].append(elapsed)
    total = workload.new_tokens * len(workload.prompts)
    speed = {name: total / statistics.median(times) for name, times in seconds.items()}
    return {
        "tokens_per_second": {name: round(value, 2) for name, value in speed.items()},
        "ratio": {n: round(speed[first] / value, 3) for n, value in speed.items() if n != first},
        "seconds": {name: [round(s, 3) for s in times] for name, times in seconds.items()},
        "answers_equal_to_ours": equal,
    }


def run_workload(
    folder: Path, name: str, dtype: str, peer: Any, limits: Limits, args: argparse.Namespace
) -> dict[str, Any]:
    """Measure one workload in one dtype, print its table and return its figures."""
    workload = make_workload(name, peer.config.vocab_size)
    contenders = make_contenders(folder, workload, dtype, peer, args.without)
    figures = measure(contenders, workload, args.rounds)
    ours = contenders[OURS]
    assert isinstance(ours, MiniEngine)
    figures["share_of_limit"] = reached(ours.engine.runner.model, ours.steps, limits)
    print(f"{name}: {workload.title}, {workload.new_tokens} new tokens each, {dtype}")
    for contender, speed in figures["tokens_per_second"].items():
        ratio = figures["ratio"].get(contender)
        equal = figures["answers_equal_to_ours"][contender]
        same = f"{equal} of {len(workload.prompts)} answers equal"
        faster = f"mini_engine is {ratio:.2f} times as fast" if ratio else ""
        print(f"  {contender:<34}{speed:8.1f} tokens/s   {same}   {faster}".rstrip())
    for part, share in figures["share_of_limit"].items():
        print(f"  {part} at {share:.0%} of the limit")
    for contender in contenders.values():
        if isinstance(contender, MiniEngine):
            contender.engine.close()
    return figures


def main(argv: Sequence[str] | None = None) -> None:
    """Print a table per workload and dtype and, with --json, keep the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--workload", nargs="+", choices=WORKLOADS, default=["mixed", "alone"])
    parser.add_argument("--dtype", nargs="+", choices=DTYPES, default=["float32"])
    parser.add_argument("--rounds", type=int, default=5, help="measured rounds; medians are shown")
    parser.add_argument("--threads", type=int, help="torch threads (default: torch's own choice)")
    parser.add_argument("--without", nargs="*", default=[], choices=PEERS)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    args = parser.parse_args(argv)
    if args.rounds < 1:
        parser.error(f"--rounds must be 1 or more, got {args.rounds}")
    if args.threads:
        torch.set_num_threads(args.threads)
    from transformers import AutoModelForCausalLM

    folder = find_model(args.model)
    result: dict[str, Any] = {
        "command": "python -m mini_engine.benchmarks.offline",
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, {torch.get_num_threads()} threads",
        "torch": torch.__version__,
        "limits": {},
        "workloads": {},
    }
    for dtype in args.dtype:
        limits = measure_limits(getattr(torch, dtype))
        result["limits"][dtype] = vars(limits)
        print(
            f"{dtype}: memory reads {limits.bandwidth / 1e9:.1f} GB/s, "
            f"matrix products {limits.flops / 1e9:.0f} GFLOP/s"
        )
        peer = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()
        for name in args.workload:
            figures = run_workload(folder, name, dtype, peer, limits, args)
            result["workloads"].setdefault(name, {})[dtype] = figures
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
