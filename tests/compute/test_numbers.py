"""How exact the arithmetic is: noise of float32 against float64, and the tie band that follows."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from mini_engine.compute.random_model import TINY_LLAMA, TINY_QWEN3, random_model
from mini_engine.config import ModelConfig
from tests.compute.harness import TIE_BAND, Bench, random_prompt

PROMPTS = [random_prompt(seed, length) for seed, length in enumerate([2, 9, 33, 60])]
CONFIGS = [TINY_LLAMA, TINY_QWEN3, replace(TINY_LLAMA, attention_bias=True)]


def logits_of_ways(config: ModelConfig, dtype: torch.dtype) -> list[torch.Tensor]:
    """Logits of every output of every prompt, once per way of batching and chunking."""
    model = random_model(config, 8, dtype=dtype)
    forced = Bench(model).generate(PROMPTS, 10)
    ways = []
    for together in (True, False):
        for chunk in (1, 5, 1000):
            bench = Bench(model)
            per_prompt = []
            groups = [PROMPTS] if together else [[prompt] for prompt in PROMPTS]
            for group in groups:
                outputs = bench.generate(group, 10, chunk)
                assert outputs == (forced if together else [forced[PROMPTS.index(group[0])]])
            per_prompt = torch.cat(bench.logits)
            # Steps mix the prompts in different orders: compare as a sorted set of rows.
            ways.append(per_prompt[per_prompt.double().sum(dim=1).argsort()])
    return ways


def spread(ways: list[torch.Tensor]) -> float:
    return max(float((ways[0] - other).abs().max()) for other in ways[1:])


@pytest.mark.parametrize("config", CONFIGS, ids=["llama", "qwen3", "biases"])
def test_batching_and_chunking_noise_is_far_below_the_tie_band(config: ModelConfig) -> None:
    """The band is 20 eps, eps the largest difference of the engine to itself (about 5e-5)."""
    eps = spread(logits_of_ways(config, torch.float32))
    assert 20 * eps < TIE_BAND


@pytest.mark.parametrize("config", CONFIGS, ids=["llama", "qwen3", "biases"])
def test_float32_stays_close_to_float64(config: ModelConfig) -> None:
    """So the difference between ways is rounding and nothing else: it vanishes in float64."""
    exact = logits_of_ways(config, torch.float64)
    rounded = logits_of_ways(config, torch.float32)
    assert float((exact[0] - rounded[0]).abs().max()) < 1e-4
    assert spread(exact) < 1e-6  # logits are handed out in float32
