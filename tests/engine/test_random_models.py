"""SEMANTICS 37 and 38 on random Llama and Qwen3 models: transformers' tokens, however scheduled."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from mini_engine import LLMEngine, SamplingParams
from mini_engine.compute.model import Model
from mini_engine.compute.random_model import TINY_LLAMA, TINY_QWEN3, random_tensors
from mini_engine.config import ModelConfig
from mini_engine.parts import EngineParts
from tests.compute.harness import TIE_BAND, load_oracle

MODELS = {
    "llama": TINY_LLAMA,
    "llama-tied": dataclasses.replace(TINY_LLAMA, tie_word_embeddings=True),
    "llama-no-groups": dataclasses.replace(TINY_LLAMA, num_kv_heads=4),
    "qwen3": TINY_QWEN3,
    "qwen3-untied": dataclasses.replace(TINY_QWEN3, tie_word_embeddings=False),
}
RADIX = EngineParts(prefix_cache="mini_engine.control.radix_cache:RadixCache")
SCHEDULES: dict[str, dict[str, Any]] = {
    "default": {},
    "budget-16": {"max_num_batched_tokens": 16},
    "budget-1": {"max_num_batched_tokens": 1},
    "tight": {"num_blocks": 24},
    "tight-uncached": {"num_blocks": 24, "enable_prefix_caching": False},
    "blocks-of-1": {"block_size": 1, "num_blocks": 500},
    "blocks-of-7": {"block_size": 7, "num_blocks": 70},
    "three-at-a-time": {"max_num_seqs": 3},
    "priority": {"policy": "priority", "num_blocks": 24},
    "no-chunks": {"enable_chunked_prefill": False},
    "radix-tree": {"parts": RADIX, "block_size": 2, "num_blocks": 50},
}
MAX_TOKENS = 16


def make_prompts() -> list[list[int]]:
    """Twelve prompts that share a prefix; lengths lie around multiples of the block size 4."""
    rng = random.Random(37)
    shared = [rng.randrange(512) for _ in range(40)]
    lengths = (1, 3, 4, 5, 15, 16, 17, 31, 33, 48, 21, 40)
    return [[*shared[: n // 2], *(rng.randrange(512) for _ in range(n - n // 2))] for n in lengths]


@torch.inference_mode()
def oracle_answers(
    config: ModelConfig, tensors: dict[str, torch.Tensor], folder: Path
) -> list[list[int]]:
    """transformers' greedy tokens for each prompt alone, cut before the first near tie."""
    oracle = load_oracle(config, tensors, folder)
    answers = []
    for prompt in make_prompts():
        tokens = list(prompt)
        for _ in range(MAX_TOKENS):
            logits = oracle(torch.tensor([tokens])).logits[0, -1]
            best = logits.topk(2).values
            if float(best[0] - best[1]) < 10 * TIE_BAND:
                break
            tokens.append(int(logits.argmax()))
            if tokens[-1] in config.eos_token_ids:
                break
        answers.append(tokens[len(prompt) :])
    return answers


@pytest.fixture(scope="module", params=list(MODELS))
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Model, list[list[int]]]:
    config = MODELS[request.param]
    tensors = random_tensors(config, seed=37)
    answers = oracle_answers(config, tensors, tmp_path_factory.mktemp("oracle"))
    return Model.from_tensors(config, tensors), answers


@pytest.mark.parametrize("schedule", list(SCHEDULES))
def test_tokens_equal_transformers(case: tuple[Model, list[list[int]]], schedule: str) -> None:
    model, answers = case
    assert sum(map(len, answers)) > 0.7 * MAX_TOKENS * 6, "too many near ties to prove anything"
    defaults = {"num_blocks": 120, "block_size": 4, "max_model_len": 96, "debug": True}
    options = {**defaults, "max_num_batched_tokens": 96, **SCHEDULES[schedule]}
    with LLMEngine(model, device="cpu", **options) as engine:
        params = [SamplingParams(max_tokens=max(1, len(a))) for a in answers]
        outputs = engine.generate(make_prompts(), params)
        for output, expected in zip(outputs, answers, strict=True):
            assert output.token_ids[: len(expected)] == expected
        if schedule.startswith("tight"):
            assert any(record.preempted for record in engine.trace)


@pytest.mark.parametrize("name", ["llama", "qwen3"])
def test_case_38_poison_of_either_sign_and_permuted_blocks_change_no_bit(name: str) -> None:
    model = Model.from_tensors(MODELS[name], random_tensors(MODELS[name], seed=38))
    logits = {}
    for label, poison, reverse in (
        ("plus", 1e4, False),
        ("minus", -1e4, False),
        ("perm", 1e4, True),
    ):
        engine = LLMEngine(
            model,
            device="cpu",
            num_blocks=30,
            block_size=4,
            max_model_len=96,
            max_num_batched_tokens=24,
            debug=True,
            poison=poison,
        )
        if reverse:
            pool = engine.cache.pool
            for block_id in pool.allocate(30):
                pool.free(block_id)  # each to the front: the free list is turned round
            assert pool.free_block_ids() == list(range(29, -1, -1))
        seen: list[torch.Tensor] = []
        engine.runner.observe = lambda schedule, rows, seen=seen: seen.append(rows.clone())
        engine.generate(make_prompts(), SamplingParams(max_tokens=12, ignore_eos=True))
        assert any(record.preempted for record in engine.trace)
        logits[label] = seen
    for label in ("minus", "perm"):
        assert len(logits[label]) == len(logits["plus"])
        assert all(map(torch.equal, logits["plus"], logits[label])), label
