"""Owns small engines of the control plane with made-up samples: no model, no torch."""

from __future__ import annotations

from typing import Any

from mini_engine.benchmarks.replay import ScriptedRunner
from mini_engine.engine import LLMEngine
from mini_engine.outputs import RequestOutput
from mini_engine.sampling_params import SamplingParams


def control_engine(num_blocks: int, block_size: int, **options: Any) -> LLMEngine:
    """An engine without a model that checks all invariants after every step."""
    options.setdefault("max_model_len", 100_000)
    scripts = options.pop("scripts", {})
    return LLMEngine(
        runner=ScriptedRunner(scripts),
        num_blocks=num_blocks,
        block_size=block_size,
        debug=True,
        **options,
    )


def add(engine: LLMEngine, name: str, prompt: Any, max_tokens: int = 1, **options: Any) -> None:
    """Queue a request by name."""
    engine.add_request(list(prompt), SamplingParams(max_tokens), request_id=name, **options)


def run_to_end(engine: LLMEngine, most_steps: int = 10_000) -> dict[str, RequestOutput]:
    """Step until nothing is unfinished; returns the final outputs by request id."""
    final = {}
    for _ in range(most_steps):
        if not engine.has_unfinished:
            return final
        final.update({o.request_id: o for o in engine.step() if o.finished})
    raise AssertionError(f"not done after {most_steps} steps")


def scheduled(engine: LLMEngine) -> list[list[int]]:
    """The tokens of each step's requests, as SEMANTICS writes them: {6,6} is [6, 6]."""
    return [list(record.scheduled.values()) for record in engine.trace]


def free(engine: LLMEngine) -> int:
    """Free blocks now."""
    return engine.cache.pool.num_free
