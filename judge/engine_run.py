"""Owns running a workload through the engine with the graded part; knows no expected value.

The control plane alone runs with `MadeUpTokens` in the model's place and needs no torch; the whole
engine runs a tiny random model or SmolLM2. Every run returns tokens, finish reasons and the trace.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping
from typing import Any

from judge.api import Context
from judge.execute import attempt


class MadeUpTokens:
    """Stands in for the model: the token depends on seed, request and its number of tokens only."""

    def __init__(self, seed: int, vocab_size: int) -> None:
        self.seed = seed
        self.vocab_size = vocab_size

    def run(self, schedule: Any) -> dict[str, int]:
        return {
            chunk.request.request_id: self.token(chunk.request.request_id, chunk.request.num_tokens)
            for chunk in schedule.chunks
            if chunk.samples
        }

    def token(self, request_id: str, num_tokens: int) -> int:
        return random.Random(f"{self.seed}/{request_id}/{num_tokens}").randrange(self.vocab_size)


def control_plane(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Run a workload through scheduler, prefix cache and pool; no model. For `execute`."""
    runner = MadeUpTokens(payload["token_seed"], payload["vocab_size"])
    return attempt(_run, parts, payload, context, None, runner)


def tiny_engine(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Run a workload through the whole engine with a tiny random model. For `execute`."""
    return attempt(_run_tiny, parts, payload, context)


def smollm2_engine(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Run a workload through the whole engine with SmolLM2. For `execute`."""
    from mini_engine.config import DEFAULT_MODEL

    return attempt(_run, parts, payload, context, DEFAULT_MODEL, None)


def _run_tiny(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    from mini_engine.compute.random_model import TINY_LLAMA, random_model

    model = random_model(TINY_LLAMA, seed=payload["model_seed"])
    return _run(parts, payload, context, model, None)


def _run(
    parts: Mapping[str, Any], payload: Any, context: Context, model: Any, runner: Any
) -> dict[str, Any]:
    from mini_engine.engine import LLMEngine
    from mini_engine.parts import EngineParts

    assert context.slot is not None
    (part,) = parts.values()
    options = dict(payload["options"])
    if runner is None:
        options["device"] = context.device
    engine = LLMEngine(
        **({} if model is None else {"model": model}),
        parts=EngineParts(**{context.slot: part}),
        runner=runner,
        **options,
    )
    outputs = serve(engine, payload)  # if it raises, closing would call the failed parts once more
    trace = [dataclasses.asdict(record.without_times()) for record in engine.trace]
    free = engine.cache.pool.num_free
    engine.close()
    return {"outputs": outputs, "trace": trace, "free": free}


def serve(engine: Any, payload: Any) -> dict[str, Any]:
    """Feed the requests at their steps, abort where the workload says, and run to the end."""
    from mini_engine.config import SamplingParams

    outputs: dict[str, Any] = {}
    arrivals = sorted(payload["requests"], key=lambda request: request["step"])
    aborts: dict[int, list[str]] = {}
    for request in arrivals:
        if request.get("abort") is not None:
            aborts.setdefault(request["abort"], []).append(request["id"])
    step = 0
    while arrivals or engine.has_unfinished:
        while arrivals and arrivals[0]["step"] <= step:
            request = arrivals.pop(0)
            params = SamplingParams(max_tokens=request["max_tokens"], ignore_eos=True)
            engine.add_request(request["prompt"], params, request_id=request["id"])
        for request_id in aborts.pop(step, []):
            gone = engine.abort(request_id)
            if gone is not None:
                outputs[request_id] = [list(gone.token_ids), gone.finish_reason]
        for output in engine.step():
            if output.finished:
                outputs[output.request_id] = [list(output.token_ids), output.finish_reason]
        step += 1
    return outputs
