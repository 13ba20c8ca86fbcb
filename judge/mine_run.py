"""Owns running an engine made of several parts of a learner's. Runs in the child.

Several files are loaded here, so this stands apart from grading, where a child loads one file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judge.api import Context
from judge.execute import OWN_FOLDER, attempt
from judge.models import folder_of
from mini_engine.learner_parts import LEARNER_PARTS, engine_parts, load_parts

MOST = 4  # requests at once; graphs are captured for all sizes up to it


def answer(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Answer prompts together. For `execute`; `parts` are not used.

    payload: "folder" (of the learner's files) and "symbols" of it that fill their slots, "model"
    ("smollm2", the path of a folder, or "tiny"), "prompts" (texts, or token ids for a model without
    a tokenizer), "params" (of each, further fields of its SamplingParams), "max_tokens". The answer
    holds for each prompt, in order, its tokens, its text ("" without a tokenizer), why it ended,
    and at every output the ids and scores (see `sampling_calls`) of the best tokens.
    """
    return attempt(_answer, payload, context)


def _answer(payload: Any, context: Context) -> list[dict[str, Any]]:
    from judge import sampling_calls, tensor_engine  # import torch
    from mini_engine.compute.model import apply_rope
    from mini_engine.engine import LLMEngine
    from mini_engine.sampling_params import SamplingParams

    folder = Path(payload["folder"])
    OWN_FOLDER["path"] = str(folder)
    things = load_parts(folder, [r for r in LEARNER_PARTS if r.symbol in payload["symbols"]])
    if all(isinstance(prompt, str) for prompt in payload["prompts"]):
        model: Any = folder_of(payload["model"])
    else:
        name = "llama" if payload["model"] == "tiny" else payload["model"]
        model = tensor_engine.load(name, 0, context.device, things.get("apply_rope", apply_rope))
    graphs = any(r.slot == "graph_runner" and r.symbol in things for r in LEARNER_PARTS)
    with LLMEngine(
        model, parts=engine_parts(things), device=context.device, block_size=8, num_blocks=96,
        max_model_len=256, max_num_batched_tokens=48, max_num_seqs=MOST, cuda_graphs=graphs,
    ) as engine:  # fmt: skip
        watch = sampling_calls.DrawWatch(engine, payload)
        chat = bool(getattr(engine.tokenizer, "chat_template", None))
        prompts = [engine.chat_prompt(p) if chat else p for p in payload["prompts"]]
        limit = {"max_tokens": payload["max_tokens"]}
        params = [SamplingParams(**limit, **fields) for fields in payload["params"]]
        outputs = engine.generate(prompts, params)
    return [
        {
            "tokens": o.token_ids,
            "text": o.text,
            "reason": o.finish_reason,
            "tops": watch.tops[o.request_id],
        }
        for o in outputs
    ]
