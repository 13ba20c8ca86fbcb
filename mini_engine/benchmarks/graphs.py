"""Measures decode steps run eagerly and replayed as CUDA graphs, by batch size.

`python -m mini_engine.benchmarks.graphs --json assets/graphs_gpu.json` on a machine with a GPU
prints and keeps milliseconds per step, launches, and the share of the memory bandwidth that a step
reaches. On a CPU it counts launches only: what replays there is an emulator, and slower than eager.
Weights are random, so nothing is fetched; it needs torch and numpy.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from mini_engine.benchmarks.limits import weight_bytes
from mini_engine.compute.attention import PagedAttention
from mini_engine.compute.batch import build_batch
from mini_engine.compute.cuda_graphs import GraphRunner
from mini_engine.compute.device import choose_device
from mini_engine.compute.kv_cache import PagedKVCache
from mini_engine.compute.launches import LaunchCounter
from mini_engine.compute.model import Model
from mini_engine.compute.random_model import QWEN3_0_6B, SMOLLM2_135M, TINY_LLAMA, random_model
from mini_engine.compute.runner import ModelRunner
from mini_engine.compute.sampler import Sampler
from mini_engine.config import DEVICES, EngineConfig
from mini_engine.control.request import Request
from mini_engine.interfaces import Chunk, Schedule

SHAPES = {"smollm2-135m": SMOLLM2_135M, "qwen3-0.6b": QWEN3_0_6B, "tiny": TINY_LLAMA}
GPU_BATCHES, CPU_BATCHES = (1, 2, 4, 8, 16, 32, 64), (1, 4, 16)
BLOCK_SIZE = 16
COMMAND = "python -m mini_engine.benchmarks.graphs --json assets/graphs_gpu.json"


class Steps:
    """One decode step of `batch` requests of `length` tokens each, to be run again and again."""

    def __init__(self, model: Model, most: int, length: int, max_model_len: int) -> None:
        self.model, self.length = model, length
        self.width = -(-length // BLOCK_SIZE)
        num_blocks = most * self.width
        config = EngineConfig(
            block_size=BLOCK_SIZE,
            num_blocks=num_blocks,
            max_model_len=max_model_len,
            max_num_seqs=most,
        )
        self.cache = PagedKVCache(
            model.config, num_blocks + 1, BLOCK_SIZE, model.dtype, model.device
        )
        self.attention = PagedAttention(model.config, model.device)
        self.eager = self._runner(None)
        began = time.perf_counter()
        self.replayed = self._runner(GraphRunner(model, self.cache, config))
        self.capture_s = time.perf_counter() - began

    def _runner(self, graph_runner: GraphRunner | None) -> ModelRunner:
        return ModelRunner(
            self.model,
            self.cache,
            build_batch,
            self.attention,
            Sampler(),
            graph_runner=graph_runner,
        )

    def schedule(self, batch: int) -> Schedule:
        """The step: every request computes its last token and samples."""
        chunks = []
        for index in range(batch):
            request = Request(str(index), [index % 100 + 1] * self.length)
            request.block_table = list(range(index * self.width, (index + 1) * self.width))
            chunks.append(Chunk(request, self.length - 1, 1, True))
        return Schedule(chunks=chunks)

    def bytes_read(self, batch: int) -> int:
        """What a step can't avoid to read: all weights once, and the batch's keys and values."""
        per_token = self.model.config.kv_bytes_per_token(self.model.dtype.itemsize)
        return weight_bytes(self.model) + batch * self.length * per_token


def count_launches(step: Callable[[], object]) -> int:
    """Operations that a step launches one by one."""
    with LaunchCounter() as counter:
        step()
    return counter.total


def milliseconds(steps: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The median of each, measured in turns. A step ends with sampling, so it ends by itself."""
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(repeats):
        for name, step in steps.items():
            torch.cuda.synchronize()
            began = time.perf_counter()
            step()
            torch.cuda.synchronize()
            taken[name].append((time.perf_counter() - began) * 1e3)
    return {name: statistics.median(values) for name, values in taken.items()}


def copy_bandwidth(device: torch.device) -> float:
    """Bytes per second that a copy of 1 GiB reads and writes: the limit to compare with."""
    source = torch.ones(2**30, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    times = []
    for _ in range(6):
        torch.cuda.synchronize()
        began = time.perf_counter()
        target.copy_(source)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return 2 * source.nbytes / min(times[1:])


def measure(steps: Steps, batch: int, repeats: int, bandwidth: float | None) -> dict[str, Any]:
    """One row of the table; times and shares are None without a GPU."""
    schedule = steps.schedule(batch)
    runs: dict[str, Callable[[], object]] = {
        "eager": lambda: steps.eager.run(schedule),
        "replayed": lambda: steps.replayed.run(schedule),
    }
    for run in runs.values():
        run()
    row: dict[str, Any] = {
        "batch": batch,
        "bucket": steps.replayed.graph_bucket,
        "eager_launches": count_launches(runs["eager"]),
        "replayed_launches": count_launches(runs["replayed"]) + 1,  # the graph itself
    }
    times: dict[str, float] = {}
    if bandwidth is not None:
        times = milliseconds(runs, repeats)
    for name in runs:
        row[f"{name}_ms"] = times.get(name)
        row[f"{name}_share"] = (
            steps.bytes_read(batch) / (times[name] / 1e3) / bandwidth if bandwidth else None
        )
    return row


def describe(row: dict[str, Any]) -> str:
    """A line of the table."""
    line = f"batch {row['batch']:>3} in {row['bucket']:>3}: launches"
    line += f" {row['eager_launches']:>5} -> {row['replayed_launches']:>3}"
    if row["eager_ms"] is None:
        return line + "   time: not measured (no GPU)"
    return line + (
        f"   ms {row['eager_ms']:7.3f} -> {row['replayed_ms']:7.3f}"
        f" ({row['eager_ms'] / row['replayed_ms']:.2f} times as fast)"
        f"   of the bandwidth {row['eager_share']:6.1%} -> {row['replayed_share']:6.1%}"
    )


def build_parser() -> argparse.ArgumentParser:
    """The command line's options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=list(SHAPES), default="smollm2-135m")
    parser.add_argument("--device", choices=DEVICES, default="auto")
    parser.add_argument("--batches", type=int, nargs="+", help="numbers of requests")
    parser.add_argument("--length", type=int, default=256, help="tokens of each request")
    parser.add_argument("--max-model-len", type=int, default=512, help="what graphs are made for")
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table and, with --json, keep the figures; returns 0."""
    args = build_parser().parse_args(argv)
    device = choose_device(args.device)
    on_gpu = device.type == "cuda"
    batches = args.batches or (GPU_BATCHES if on_gpu else CPU_BATCHES)
    dtype = torch.bfloat16 if on_gpu else torch.float32
    model = random_model(SHAPES[args.shape], 0, device, dtype)
    steps = Steps(model, max(batches), args.length, args.max_model_len)
    bandwidth = copy_bandwidth(device) if on_gpu else None
    name = torch.cuda.get_device_name(device) if on_gpu else platform.machine()
    print(f"{args.shape}, {dtype}, {args.length} tokens each, on {name}")
    rows = []
    for batch in batches:
        rows.append(measure(steps, batch, args.repeats, bandwidth))
        print(describe(rows[-1]), flush=True)
    if args.json:
        figures = {
            "command": COMMAND,
            "date": datetime.date.today().isoformat(),
            "device": name,
            "torch": torch.__version__,
            "shape": args.shape,
            "dtype": str(dtype).removeprefix("torch."),
            "length": args.length,
            "max_model_len": args.max_model_len,
            "eager_attention": steps.attention.no_fast_path or "varlen_attn",
            "copy_gb_per_s": None if bandwidth is None else round(bandwidth / 1e9, 1),
            "capture_s": round(steps.capture_s, 2) if on_gpu else None,
            "rows": rows,
        }
        args.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
