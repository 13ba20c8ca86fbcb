"""Owns running the engine with a graded part of its text side; knows no expected value.

Runs in the child. Either the tokens of every request are given, and no model runs, or SmolLM2 makes
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judge.api import Context
from judge.execute import attempt
from judge.text_tokenizers import LightTokenizer, light_tokenizer


class ScriptedTokens:
    """Stands in for the model: each request gets its own tokens, one after another."""

    def __init__(self, scripts: Mapping[str, list[int]]) -> None:
        self._scripts = scripts

    def run(self, schedule: Any) -> dict[str, int]:
        """The next token of every request that samples; the last one again behind its script."""
        sampled = {}
        for chunk in schedule.chunks:
            if chunk.samples:
                script = self._scripts[chunk.request.request_id]
                number = min(len(chunk.request.output_token_ids), len(script) - 1)
                sampled[chunk.request.request_id] = script[number]
        return sampled


def scripted(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Serve requests whose tokens are known beforehand. For `execute`; needs no torch.

    payload: "model" (whose tokenizer), "requests": each with "id", "ask" (the prompt), "output" (a
    text), "drop" (how many of its last tokens never come), "end" (whether the end token follows),
    "max_tokens", "stop", "include", "step" (when it arrives). The answer: see `_served`.
    """
    return attempt(_scripted, parts, payload, context)


def _scripted(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    from mini_engine.engine import LLMEngine

    tokenizer = light_tokenizer(payload["model"])
    scripts = {}
    for request in payload["requests"]:
        ids = tokenizer.encode(request["output"])
        scripts[request["id"]] = ids[: len(ids) - request["drop"]] + tokenizer.all_special_ids[:1]
    with LLMEngine(
        parts=_parts(parts, context), runner=ScriptedTokens(scripts), tokenizer=tokenizer,
        num_blocks=64, max_model_len=200, block_size=4,
    ) as engine:  # fmt: skip
        return _served(engine, tokenizer, payload["requests"])


def smollm2(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Serve requests with SmolLM2, or what is in its place. For `execute`; see `scripted`."""
    return attempt(_smollm2, parts, payload, context)


def _smollm2(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    from judge.models import folder_of
    from mini_engine.engine import LLMEngine

    with LLMEngine(
        folder_of(payload["model"]), parts=_parts(parts, context), device=context.device,
        num_blocks=64, max_model_len=256,
    ) as engine:  # fmt: skip
        return _served(engine, engine.tokenizer, payload["requests"])


def _parts(parts: Mapping[str, Any], context: Context) -> Any:
    from mini_engine.parts import EngineParts

    assert context.slot is not None
    (part,) = parts.values()
    return EngineParts(**{context.slot: part})


def _served(engine: Any, tokenizer: LightTokenizer, requests: list[Any]) -> dict[str, Any]:
    """Run to the end. {"free": free blocks at the end, "steps": how many, "outputs": per request
    [[new text, number of new ids] of each output, ids, reason, stop, texts]}, where `texts` holds
    what the first 0, 1, ... ids decode to.
    """
    seen: dict[str, Any] = {}
    arrivals = sorted(requests, key=lambda request: request["step"])
    step = 0
    while arrivals or engine.has_unfinished:
        while arrivals and arrivals[0]["step"] <= step:
            request = arrivals.pop(0)
            prompt = request["ask"] or [1]
            engine.add_request(prompt, _params(request, tokenizer), request_id=request["id"])
        for output in engine.step():
            entry = seen.setdefault(output.request_id, [[], [], None, None, []])
            entry[0].append([output.new_text, len(output.new_token_ids)])
            if output.finished:
                entry[1:4] = [list(output.token_ids), output.finish_reason, output.stop]
        step += 1
    for entry in seen.values():
        entry[4] = [
            tokenizer.decode(entry[1][:count], skip_special_tokens=True)
            for count in range(len(entry[1]) + 1)
        ]
    return {"free": engine.cache.pool.num_free, "steps": step, "outputs": seen}


def _params(request: Any, tokenizer: Any) -> Any:
    from mini_engine.sampling_params import SamplingParams

    return SamplingParams(
        max_tokens=request["max_tokens"],
        stop=tuple(request["stop"]),
        include_stop_str_in_output=request["include"],
        stop_token_ids=tuple(tokenizer.all_special_ids[:1]) if request["end"] else (),
    )
