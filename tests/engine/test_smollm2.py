"""SEMANTICS 37 on the real model: each answer equals transformers' on that prompt alone.

The oracle is committed data (tools/oracle.py made it, in float64, from prompts without near ties);
two prompts are derived again here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mini_engine import LLMEngine, SamplingParams
from mini_engine.compute.model import Model
from mini_engine.text.checkpoint import find_model, load_config, load_weights

DATA = Path(__file__).parents[1] / "data" / "oracle_smollm2.json"
ORACLE = json.loads(DATA.read_text(encoding="utf-8"))
PROMPTS = [entry["prompt_token_ids"] for entry in ORACLE["prompts"]]
ANSWERS = [entry["token_ids"] for entry in ORACLE["prompts"]]


@pytest.fixture(scope="module")
def model() -> Model:
    import torch

    folder = find_model("smollm2-135m-instruct")
    config = load_config(folder)
    return Model.from_tensors(config, load_weights(folder, config, torch.float32))


def generate(model: Model, priorities: bool = False, **options: Any) -> LLMEngine:
    """Serve all prompts at once and compare every answer; returns the engine for its trace."""
    options.setdefault("num_blocks", 600)
    engine = LLMEngine(model, device="cpu", max_model_len=1024, **options)
    params = SamplingParams(max_tokens=ORACLE["max_tokens"])
    for index, prompt in enumerate(PROMPTS):
        priority = (index * 7) % 5 if priorities else 0
        engine.add_request(prompt, params, request_id=str(index), priority=priority)
    answers = {}
    while engine.has_unfinished:
        answers.update({o.request_id: o.token_ids for o in engine.step() if o.finished})
    for index, expected in enumerate(ANSWERS):
        assert answers[str(index)] == expected, f"prompt {index}"
    return engine


def test_the_oracle_has_24_prompts_without_near_ties() -> None:
    assert len(ORACLE["prompts"]) == 24
    assert all(entry["margin"] > ORACLE["min_margin"] for entry in ORACLE["prompts"])
    assert max(map(len, PROMPTS)) > 150


def test_default(model: Model) -> None:
    engine = generate(model)
    assert any(sum(record.cached.values()) for record in engine.trace), "no prefix was shared"


def test_budget_16_cuts_prompts_into_chunks(model: Model) -> None:
    engine = generate(model, max_num_batched_tokens=16)
    assert max(record.total for record in engine.trace) == 16


def test_a_tight_pool_preempts(model: Model) -> None:
    longest = max(len(p) + len(a) for p, a in zip(PROMPTS, ANSWERS, strict=True))
    engine = generate(model, num_blocks=-(-longest // 16) + 1)
    assert sum(len(record.preempted) for record in engine.trace) >= 3


def test_12_blocks_of_the_short_prompts(model: Model) -> None:
    fits = [i for i, p in enumerate(PROMPTS) if len(p) + ORACLE["max_tokens"] <= 12 * 16]
    assert len(fits) >= 18
    engine = LLMEngine(model, device="cpu", num_blocks=12, max_model_len=192)
    params = SamplingParams(max_tokens=ORACLE["max_tokens"])
    outputs = engine.generate([PROMPTS[i] for i in fits], params)
    assert [o.token_ids for o in outputs] == [ANSWERS[i] for i in fits]
    assert sum(len(record.preempted) for record in engine.trace) >= 1


def test_without_prefix_cache(model: Model) -> None:
    engine = generate(model, enable_prefix_caching=False)
    assert not any(sum(record.cached.values()) for record in engine.trace)


def test_priority_in_a_tight_pool(model: Model) -> None:
    engine = generate(model, priorities=True, policy="priority", num_blocks=24)
    assert sum(len(record.preempted) for record in engine.trace) >= 1


def test_debug_mode_poison_changes_nothing(model: Model) -> None:
    generate(model, debug=True, num_blocks=40, max_num_batched_tokens=64)


def test_two_answers_derived_again_by_transformers() -> None:
    import torch
    from transformers import AutoModelForCausalLM

    oracle = AutoModelForCausalLM.from_pretrained(
        find_model("smollm2-135m-instruct"), dtype=torch.float32
    )
    for prompt, expected in list(zip(PROMPTS, ANSWERS, strict=True))[:2]:
        ids = torch.tensor([prompt])
        out = oracle.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=ORACLE["max_tokens"],
            do_sample=False,
            pad_token_id=0,
        )
        assert out[0, len(prompt) :].tolist() == expected
