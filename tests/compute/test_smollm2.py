"""The default model, SmolLM2-135M-Instruct: logits and greedy tokens equal transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from mini_engine.compute.model import Model
from mini_engine.config import DEFAULT_MODEL
from mini_engine.text.checkpoint import (
    ModelNotAvailable,
    encode_chat,
    find_model,
    load_config,
    load_tokenizer,
    load_weights,
)
from tests.compute.harness import Bench, logits_of, margins_of, oracle_tokens

QUESTIONS = ["What is a KV cache?", "Name three colours.", "Why is the sky blue?"]
TIE_BAND = 1e-3  # max(1e-3, 20 eps) with eps of at most 4e-5 between chunkings of this model


@pytest.fixture(scope="module")
def folder() -> Path:
    try:
        return find_model(DEFAULT_MODEL)
    except ModelNotAvailable as error:
        pytest.skip(f"the default model is not here: {error}")


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    config = load_config(folder)
    return Model.from_tensors(config, load_weights(folder, config, torch.float32))


@pytest.fixture(scope="module")
def oracle(folder: Path) -> Any:
    from transformers import LlamaForCausalLM

    return LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def prompts(folder: Path) -> list[list[int]]:
    tokenizer = load_tokenizer(folder)
    return [encode_chat(tokenizer, [{"role": "user", "content": text}]) for text in QUESTIONS]


def test_logits_of_a_chat_equal_transformers(
    model: Model, oracle: Any, prompts: list[list[int]]
) -> None:
    for prompt in prompts:
        with torch.inference_mode():
            expected = oracle(torch.tensor([prompt])).logits[0]
        assert (logits_of(model, prompt) - expected).abs().max() < 1e-3


def test_chats_served_together_and_in_chunks_equal_transformers_alone(
    model: Model, oracle: Any, prompts: list[list[int]]
) -> None:
    expected = [oracle_tokens(oracle, prompt, 16) for prompt in prompts]
    for prompt, tokens in zip(prompts, expected, strict=True):
        margins = margins_of(logits_of(model, prompt + tokens)[len(prompt) - 1 : -1])
        assert margins.min() > 10 * TIE_BAND
    for chunk in (13, 1000):
        assert Bench(model, block_size=16).generate(prompts, 16, chunk) == expected
