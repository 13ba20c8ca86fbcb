"""Owns placing a tensor function of a learner inside the model or the engine. Runs in the child."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import torch

from judge.api import Context
from judge.engine_run import serve
from judge.execute import attempt
from judge.tensor_calls import TOP, threads
from mini_engine.compute.model import Model, apply_rope
from mini_engine.compute.random_model import TINY_LLAMA, TINY_QWEN3, random_model
from mini_engine.learner_parts import engine_parts

TINY = {
    "llama": TINY_LLAMA,
    "qwen3": TINY_QWEN3,
    "deep": dataclasses.replace(TINY_LLAMA, num_layers=36),  # more layers than SmolLM2
    "double": TINY_LLAMA,
}
DTYPES = {"double": torch.float64}  # of the tiny models; the others are float32


def run(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Serve a workload with the learner's function in its place. For `execute`.

    payload: as engine_checks.workload makes it, with "model": "llama", "qwen3" (both tiny,
    random) or "smollm2". The answer is that of engine_checks, with "tops": for each request the ids
    and logits of the best tokens at every output.
    """
    count = torch.get_num_threads() if payload["model"] == "smollm2" else 1
    with threads(count):
        return attempt(_run, parts, payload, context)


@functools.lru_cache(maxsize=16)
def load(name: str, seed: int, device: str, rope: Any = apply_rope) -> Any:
    """A tiny random model, or SmolLM2 from this machine. Kept: most cases share one."""
    if name != "smollm2":
        return random_model(
            TINY[name], seed, device, DTYPES.get(name, torch.float32), apply_rope=rope
        )
    from mini_engine.config import DEFAULT_MODEL
    from mini_engine.text.checkpoint import find_model, load_config, load_weights

    folder = find_model(DEFAULT_MODEL)
    config = load_config(folder)
    weights = load_weights(folder, config, torch.float32)
    return Model.from_tensors(config, weights, device, torch.float32, rope)


def _run(parts: Mapping[str, Any], payload: Any, context: Context) -> dict[str, Any]:
    from mini_engine.engine import LLMEngine

    rope = parts.get("apply_rope", apply_rope)
    model = load(payload["model"], payload["model_seed"], context.device, rope)
    options = {**payload["options"], "device": context.device}
    tops: dict[str, list[Any]] = {}

    def observe(schedule: Any, logits: Any) -> None:
        sampled = [c.request.request_id for c in schedule.chunks if c.samples]
        values, ids = logits.topk(TOP)
        for request_id, row, best in zip(sampled, values.tolist(), ids.tolist(), strict=True):
            tops.setdefault(request_id, []).append([best, row])

    with LLMEngine(model, parts=engine_parts(parts), **options) as engine:
        engine.runner.observe = observe
        outputs = serve(engine, payload)
        trace = [dataclasses.asdict(record.without_times()) for record in engine.trace]
        free = engine.cache.pool.num_free
    return {"outputs": outputs, "trace": trace, "free": free, "tops": tops}
