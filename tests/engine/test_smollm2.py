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


SCHEDULES: dict[str, dict[str, Any]] = {
    "default": {},
    "budget of 16": {"max_num_batched_tokens": 16},
    "12 blocks": {"num_blocks": 12},
    "no prefix cache": {"enable_prefix_caching": False},
    "priority, 12 blocks": {"policy": "priority", "num_blocks": 12},
}


@pytest.mark.parametrize("schedule", list(SCHEDULES))
def test_24_answers_equal_transformers(model: Model, schedule: str) -> None:
    options = {"num_blocks": 600, **SCHEDULES[schedule]}
    engine = LLMEngine(model, device="cpu", max_model_len=192, **options)
    params = SamplingParams(max_tokens=ORACLE["max_tokens"])
    for index, prompt in enumerate(PROMPTS):
        engine.add_request(prompt, params, request_id=str(index), priority=(index * 7) % 5)
    answers = {}
    while engine.has_unfinished:
        answers.update({o.request_id: o.token_ids for o in engine.step() if o.finished})
    assert [answers[str(index)] for index in range(len(ANSWERS))] == ANSWERS
    # the schedule did what its name says
    trace = engine.trace
    assert any(record.preempted for record in trace) == ("12 blocks" in schedule)
    assert any(sum(record.cached.values()) for record in trace) == ("no prefix" not in schedule)
    assert max(record.total for record in trace) <= engine.config.max_num_batched_tokens


def test_the_oracle_has_24_prompts_without_near_ties() -> None:
    assert len(ORACLE["prompts"]) == 24
    assert all(entry["margin"] > ORACLE["min_margin"] for entry in ORACLE["prompts"])


def test_debug_mode_poison_changes_nothing(model: Model) -> None:
    few = [0, 1, 20, 21]
    options = {"num_blocks": 16, "max_num_batched_tokens": 48, "debug": True}
    with LLMEngine(model, device="cpu", max_model_len=192, **options) as engine:
        outputs = engine.generate(
            [PROMPTS[i] for i in few], SamplingParams(max_tokens=ORACLE["max_tokens"])
        )
        assert [o.token_ids for o in outputs] == [ANSWERS[i] for i in few]


def test_graphs_change_nothing(model: Model) -> None:
    """Replayed by the emulator, which is slow: few prompts and few buckets."""
    few = [0, 1, 20, 21]
    options = {"num_blocks": 40, "max_model_len": 112, "max_num_seqs": 3, "cuda_graphs": True}
    with LLMEngine(model, device="cpu", **options) as engine:
        outputs = engine.generate([PROMPTS[i] for i in few], SamplingParams(max_tokens=8))
        assert [o.token_ids for o in outputs] == [ANSWERS[i][:8] for i in few]
        assert {record.graph_bucket for record in engine.trace} == {None, 1, 3}
        launches = {graph.num_launches for graph in engine.runner.graph_runner.graphs.values()}
        assert len(launches) == 1
        assert launches.pop() > 30 * 25  # operations of 30 layers


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
