"""The model equals transformers, for every variant of the two families that it supports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from mini_engine.compute.model import Model, apply_rope, rope_frequencies
from mini_engine.compute.naive import generate_cached, generate_naive
from mini_engine.compute.random_model import (
    TINY_LLAMA,
    TINY_QWEN3,
    random_model,
    random_tensors,
)
from mini_engine.config import ModelConfig
from tests.compute.harness import (
    TIE_BAND,
    load_oracle,
    logits_of,
    margins_of,
    oracle_tokens,
    random_prompt,
)

VARIANTS = {
    "llama gqa untied": TINY_LLAMA,
    "llama tied": replace(TINY_LLAMA, tie_word_embeddings=True),
    "llama mha": replace(TINY_LLAMA, num_kv_heads=4),
    "llama one kv head": replace(TINY_LLAMA, num_kv_heads=1, head_dim=8),
    "llama biases": replace(TINY_LLAMA, attention_bias=True, mlp_bias=True),
    "llama linear rope": replace(TINY_LLAMA, rope_scaling=("linear", 4.0)),
    "llama llama3 rope": replace(
        TINY_LLAMA, rope_theta=500000.0, rope_scaling=("llama3", 8.0, 1.0, 4.0, 64)
    ),
    "qwen3 tied": TINY_QWEN3,
    "qwen3 untied biases": replace(TINY_QWEN3, tie_word_embeddings=False, attention_bias=True),
}


@pytest.mark.parametrize("config", VARIANTS.values(), ids=list(VARIANTS))
def test_logits_and_greedy_tokens_equal_transformers(config: ModelConfig, tmp_path: Path) -> None:
    tensors = random_tensors(config, seed=11)
    oracle = load_oracle(config, tensors, tmp_path)
    model = Model.from_tensors(config, tensors)
    strict = 0
    for seed in range(6):
        prompt = random_prompt(seed, 21)
        expected = oracle_tokens(oracle, prompt, 24)
        text = prompt + expected
        with torch.inference_mode():
            oracle_logits = oracle(torch.tensor([text])).logits[0]
        assert (logits_of(model, text) - oracle_logits).abs().max() < 1e-4
        # Tokens are only comparable where no two candidates are nearly equal.
        if margins_of(oracle_logits[len(prompt) - 1 : -1]).min() > 10 * TIE_BAND:
            strict += 1
            assert generate_naive(model, prompt, 24) == expected
            assert generate_cached(model, prompt, 24) == expected
    assert strict >= 2


def test_llama3_scaling_has_all_three_zones() -> None:
    """Otherwise the comparison with transformers would not reach the smooth passage."""
    config = VARIANTS["llama llama3 rope"]
    ratio = rope_frequencies(replace(config, rope_scaling=None)) / rope_frequencies(config)
    assert (ratio == 1).any()
    assert torch.isclose(ratio, torch.tensor(8.0)).any()
    assert ((ratio > 1.01) & (ratio < 7.99)).any()


def test_an_unknown_rope_scaling_is_refused() -> None:
    with pytest.raises(ValueError, match="yarn"):
        rope_frequencies(replace(TINY_LLAMA, rope_scaling=("yarn", 4.0)))


def adjacent_rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """The wrong pairing: number 2i with 2i + 1."""
    first, second = x[..., ::2], x[..., 1::2]
    cos, sin = cos[:, None], sin[:, None]
    pairs = (first * cos - second * sin, second * cos + first * sin)
    return torch.stack(pairs, dim=-1).flatten(-2)


@pytest.mark.parametrize("config", [TINY_LLAMA, TINY_QWEN3], ids=["llama", "qwen3"])
@pytest.mark.parametrize("seed", range(5))
def test_the_two_rope_pairings_differ_from_position_1_on(config: ModelConfig, seed: int) -> None:
    text = random_prompt(seed, 12)
    right = logits_of(random_model(config, seed), text)
    wrong = logits_of(random_model(config, seed, apply_rope=adjacent_rope), text)
    assert torch.equal(right[0], wrong[0])  # nothing is turned at position 0
    assert ((right - wrong).abs().amax(dim=1)[1:] > 0.2).all()
    assert (right.argmax(dim=1) != wrong.argmax(dim=1)).any()


def test_rope_keeps_lengths_and_depends_on_distance_only() -> None:
    frequencies = rope_frequencies(TINY_LLAMA)
    x, y = torch.randn(2, 1, 1, 16, generator=torch.Generator().manual_seed(0))

    def turned(vector: torch.Tensor, position: int) -> torch.Tensor:
        angles = position * frequencies[None]
        return apply_rope(vector, angles.cos(), angles.sin())

    assert torch.allclose(turned(x, 9).norm(), x.norm())
    near, far = (turned(x, 3) * turned(y, 1)).sum(), (turned(x, 103) * turned(y, 101)).sum()
    assert torch.allclose(near, far, atol=1e-4)
    other = (turned(x, 4) * turned(y, 1)).sum()
    assert not torch.allclose(near, other, atol=1e-2)


@pytest.mark.parametrize("config", [TINY_LLAMA, TINY_QWEN3], ids=["llama", "qwen3"])
@pytest.mark.parametrize("seed", range(4))
def test_random_models_do_not_collapse_and_keep_margins(config: ModelConfig, seed: int) -> None:
    model = random_model(config, seed)
    prompt = random_prompt(seed, 9)
    outputs = generate_cached(model, prompt, 48)
    assert len(set(outputs)) > 20
    margins = margins_of(logits_of(model, prompt + outputs)[len(prompt) - 1 : -1])
    assert margins.median() > 0.5


def test_random_weights_depend_on_the_seed_only() -> None:
    first, again, other = (random_tensors(TINY_LLAMA, seed) for seed in (1, 1, 2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["model.embed_tokens.weight"], other["model.embed_tokens.weight"])


def test_end_tokens_of_the_tiny_qwen3_sometimes_occur() -> None:
    ended = 0
    for seed in range(12):
        outputs = generate_cached(
            random_model(TINY_QWEN3, seed), [1, 2, 3], 32, TINY_QWEN3.eos_token_ids
        )
        assert not set(outputs[:-1]) & set(TINY_QWEN3.eos_token_ids)
        ended += len(outputs) < 32
    assert 2 <= ended < 12


def test_tied_embeddings_share_memory_and_parameters_need_no_grad() -> None:
    model = random_model(TINY_QWEN3, 0)
    assert model.lm_head.weight.data_ptr() == model.embed.weight.data_ptr()
    assert not any(parameter.requires_grad for parameter in model.parameters())
    untied = random_model(TINY_LLAMA, 0)
    assert untied.lm_head.weight.data_ptr() != untied.embed.weight.data_ptr()


def test_a_model_made_without_weights_has_the_same_structure() -> None:
    """`Model(config)` alone serves to print and explain the layers."""
    names = {name for name, _ in Model(TINY_QWEN3).named_parameters()}
    assert names == {name for name, _ in random_model(TINY_QWEN3, 0).named_parameters()}


def test_missing_unexpected_and_misshapen_tensors_are_refused() -> None:
    tensors = random_tensors(TINY_LLAMA, 0)
    name = "model.layers.1.self_attn.k_proj.weight"
    with pytest.raises(ValueError, match=r"missing: " + name):
        Model.from_tensors(TINY_LLAMA, {k: v for k, v in tensors.items() if k != name})
    with pytest.raises(ValueError, match=r"unexpected: model\.layers\.9\.x"):
        Model.from_tensors(TINY_LLAMA, {**tensors, "model.layers.9.x": torch.zeros(1)})
    with pytest.raises(ValueError, match=r"k_proj\.weight \[4, 64\], expected \[32, 64\]"):
        Model.from_tensors(TINY_LLAMA, {**tensors, name: torch.zeros(4, 64)})


def test_known_surplus_in_a_checkpoint_is_ignored() -> None:
    tensors = random_tensors(TINY_QWEN3, 0)
    surplus = {
        "lm_head.weight": tensors["model.embed_tokens.weight"].clone(),
        "model.layers.0.self_attn.rotary_emb.inv_freq": torch.zeros(16),
    }
    model = Model.from_tensors(TINY_QWEN3, {**tensors, **surplus})
    assert model.lm_head.weight.data_ptr() == model.embed.weight.data_ptr()


@pytest.mark.parametrize("config", [TINY_LLAMA, TINY_QWEN3], ids=["llama", "qwen3"])
def test_bfloat16_follows_float32(config: ModelConfig) -> None:
    text = random_prompt(5, 40)
    exact = logits_of(random_model(config, 2), text)
    rounded = logits_of(random_model(config, 2, dtype=torch.bfloat16), text)
    assert rounded.dtype == torch.float32
    # 8 bits of mantissa: an error of a few percent of the logits' scale of 8.
    assert (rounded - exact).abs().mean() < 0.5
    assert (rounded - exact).abs().max() > 0
