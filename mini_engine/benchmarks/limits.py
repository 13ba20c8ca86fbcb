"""Owns what the machine could do at best, and how much of it a run of the engine reached.

A decode step has to read all weights once, so it can't be faster than memory; a prefill has to do
all multiplications, so it can't be faster than the best matrix product. Both are measured here.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from mini_engine.compute.model import Model
from mini_engine.config import ModelConfig
from mini_engine.trace import StepRecord


@dataclass(frozen=True)
class Limits:
    """Bytes per second from memory, and floating-point operations per second of a product."""

    bandwidth: float
    flops: float


def measure_limits(dtype: torch.dtype, size: int = 2048, mebibytes: int = 512) -> Limits:
    """The best of several rounds, with the threads that torch uses now."""
    data = torch.ones(mebibytes * 2**20 // 4)
    left = torch.ones(size, size, dtype=dtype)
    return Limits(
        bandwidth=data.nbytes / _best_seconds(lambda: data.sum()),
        flops=2 * size**3 / _best_seconds(lambda: left @ left),
    )


def _best_seconds(call: Callable[[], object], rounds: int = 7) -> float:
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times[1:])


def weight_bytes(model: Model) -> int:
    """Bytes that a decode step reads: all weights, and of untied embeddings only a few rows."""
    total = sum(weight.nbytes for weight in model.parameters())  # a tied matrix comes once
    tied = model.lm_head.weight is model.embed.weight
    return total if tied else total - model.embed.weight.nbytes


def forward_flops(config: ModelConfig, chunks: Sequence[tuple[int, int]], samples: int) -> int:
    """Floating-point operations of one forward pass; a multiplication with its addition is two.

    `chunks` are (tokens computed before, tokens computed now) of each request. Counts matrix
    products and attention (each token with those up to itself), and the logits of `samples` rows.
    """
    width, kv_width = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
    per_token = config.hidden_size * (2 * width + 2 * kv_width + 3 * config.intermediate_size)
    tokens = sum(now for _, now in chunks)
    pairs = sum(before * now + now * (now + 1) // 2 for before, now in chunks)
    products = config.num_layers * (per_token * tokens + 2 * width * pairs)
    return 2 * (products + samples * config.hidden_size * config.vocab_size)


def reached(model: Model, steps: Sequence[StepRecord], limits: Limits) -> dict[str, float]:
    """Shares of the limits that the steps reached, forward passes with sampling only.

    "decode": time to read weights and KV at full bandwidth, over the median time of the steps in
    which every request computes one token. "prefill": operations over the time of the others, of
    the speed of the product. A share is left out where there are no such steps.
    """
    decodes: list[StepRecord] = []
    prefills: list[StepRecord] = []
    for step in steps:
        if step.times is not None and step.scheduled:
            alone = all(count == 1 for count in step.scheduled.values())
            (decodes if alone else prefills).append(step)
    shares = {}
    if decodes:
        kv = model.config.kv_bytes_per_token(model.dtype.itemsize)
        weights = weight_bytes(model)
        shares["decode"] = statistics.median(
            (weights + kv * sum(step.computed.values())) / limits.bandwidth / _run_seconds(step)
            for step in decodes
        )
    if prefills:
        operations = sum(
            forward_flops(
                model.config,
                [(step.computed[name], now) for name, now in step.scheduled.items()],
                len(step.sampled),
            )
            for step in prefills
        )
        shares["prefill"] = operations / limits.flops / sum(map(_run_seconds, prefills))
    return shares


def _run_seconds(step: StepRecord) -> float:
    if step.times is None:
        raise ValueError(f"step {step.step} has no times")
    return step.times.run
