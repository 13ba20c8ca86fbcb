"""Owns running a workload through the engine with the graded part; knows no expected value.

A part that needs no torch runs with the shadow model in the model's place; the whole engine runs a
tiny random model or SmolLM2. Every run returns tokens, finish reasons and the trace, with a model
of tensors also the best logits at every output (see `engine_watch`).
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from judge import engine_watch
from judge.api import Context
from judge.execute import attempt
from judge.models import REAL
from mini_engine.shadow import ShadowModel

OF_BATCH = ("slot_mapping", "logits_rows")  # what the shadow model takes of a batch


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


def shadow_engine(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Run a workload through the engine with the shadow model. For `execute`."""
    return attempt(_run_shadow, parts, payload, context)


def tiny_engine(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Run a workload through the whole engine with a tiny random model. For `execute`."""
    return attempt(_run_tiny, parts, payload, context)


def smollm2_engine(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Run a workload through the whole engine with SmolLM2, or what is in its place. For `execute`.

    payload: "model" is "smollm2" or the path of a folder.
    """
    return attempt(_run_real, parts, payload, context)


def _run_shadow(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Parts of a batch go into the shadow model, the others into their slot of the engine."""
    of_batch = {symbol: part for symbol, part in parts.items() if symbol in OF_BATCH}
    model = ShadowModel(payload["options"]["block_size"], payload["vocab_size"], **of_batch)
    slots = {} if of_batch else _slots(parts, context)
    return _run(slots, payload, runner=model)


def _run_tiny(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    from mini_engine.compute.random_model import TINY_LLAMA, random_model

    model = random_model(TINY_LLAMA, seed=payload["model_seed"])
    return _run(_slots(parts, context), payload, model=model, device=context.device)


def _run_real(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    from judge.tensor_engine import load  # imports torch; keeps the model for further runs

    model = load(payload.get("model", REAL), 0, context.device)
    return _run(_slots(parts, context), payload, model=model, device=context.device)


def _slots(parts: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """The one part of an exercise in its slot."""
    (part,) = parts.values()
    assert context.slot is not None
    return {context.slot: part}


def _run(slots: Mapping[str, Any], payload: Any, **engine_options: Any) -> Any:
    from mini_engine.engine import LLMEngine
    from mini_engine.parts import EngineParts

    options = {**payload["options"], **engine_options}
    return engine_watch.run(LLMEngine(parts=EngineParts(**slots), **options), payload, serve)


def serve(engine: Any, payload: Any) -> dict[str, Any]:
    """Feed the requests at their steps, abort where the workload says, and run to the end.

    A request's "params", if it has any, are further fields of its SamplingParams.
    """
    from mini_engine.sampling_params import SamplingParams

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
            params = SamplingParams(
                max_tokens=request["max_tokens"], ignore_eos=True, **request.get("params", {})
            )
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
