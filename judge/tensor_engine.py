"""Owns placing a tensor function of a learner inside the model or the engine. Runs in the child."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import torch

from judge import engine_watch
from judge.api import Context
from judge.engine_run import serve
from judge.execute import attempt
from judge.models import folder_of, is_real
from judge.tensor_calls import threads
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
    random), "smollm2" or the path of a model's folder. The answer is that of `engine_watch`.
    """
    count = torch.get_num_threads() if is_real(payload["model"]) else 1
    with threads(count):
        return attempt(_run, parts, payload, context)


@functools.lru_cache(maxsize=16)
def load(name: str, seed: int, device: str, rope: Any = apply_rope) -> Any:
    """A tiny random model, or a real one from this machine. Kept: most cases share one."""
    if not is_real(name):
        return random_model(
            TINY[name], seed, device, DTYPES.get(name, torch.float32), apply_rope=rope
        )
    from mini_engine.text.checkpoint import load_config, load_weights

    folder = folder_of(name)
    config = load_config(folder)
    weights = load_weights(folder, config, torch.float32)
    return Model.from_tensors(config, weights, device, torch.float32, rope)


def _run(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    from mini_engine.engine import LLMEngine

    rope = parts.get("apply_rope", apply_rope)
    model = load(payload["model"], payload["model_seed"], context.device, rope)
    options = {**payload["options"], "device": context.device}
    engine = LLMEngine(model, parts=engine_parts(parts), **options)
    return engine_watch.run(engine, payload, serve)
