"""Owns models with random weights: tiny ones for tests and judge, and real shapes to measure with.

Such a model says nothing sensible, but it is as deterministic as a trained one, and its weights are
scaled so that mistakes show: the best token leads the second by a wide margin, texts do not
collapse into one repeated token, and attention depends strongly on positions, so that RoPE with the
wrong pairing gives other logits from position 1 on.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mini_engine.compute.model import ApplyRope, Model, apply_rope
from mini_engine.compute.weights import checkpoint_shapes
from mini_engine.config import ModelConfig

# Grouped-query attention, untied. No end-of-sequence token: a request ends where its params say.
TINY_LLAMA = ModelConfig(
    architecture="LlamaForCausalLM",
    vocab_size=512,
    hidden_size=64,
    intermediate_size=128,
    num_layers=3,
    num_heads=4,
    num_kv_heads=2,
    head_dim=16,
    max_position_embeddings=2048,
)

# Norms on queries and keys, head_dim unlike hidden_size / num_heads, tied. One token of 32 ends a
# sequence, so that this happens now and then in texts of a few dozen tokens.
TINY_QWEN3 = ModelConfig(
    architecture="Qwen3ForCausalLM",
    vocab_size=512,
    hidden_size=64,
    intermediate_size=96,
    num_layers=3,
    num_heads=4,
    num_kv_heads=2,
    head_dim=32,
    max_position_embeddings=2048,
    tie_word_embeddings=True,
    qk_norm=True,
    eos_token_ids=tuple(range(0, 512, 32)),
)

SMOLLM2_135M = ModelConfig(
    architecture="LlamaForCausalLM",
    vocab_size=49152,
    hidden_size=576,
    intermediate_size=1536,
    num_layers=30,
    num_heads=9,
    num_kv_heads=3,
    head_dim=64,
    max_position_embeddings=8192,
    rope_theta=100000.0,
    rms_norm_eps=1e-5,
    tie_word_embeddings=True,
    eos_token_ids=(2,),
)

QWEN3_0_6B = ModelConfig(
    architecture="Qwen3ForCausalLM",
    vocab_size=151936,
    hidden_size=1024,
    intermediate_size=3072,
    num_layers=28,
    num_heads=16,
    num_kv_heads=8,
    head_dim=128,
    max_position_embeddings=40960,
    rope_theta=1000000.0,
    rms_norm_eps=1e-6,
    tie_word_embeddings=True,
    qk_norm=True,
    eos_token_ids=(151645, 151643),
)

LOGIT_SCALE = 8.0  # standard deviation of the logits
ATTENTION_SCALE = 1.4  # of queries and keys: peaked attention, so that positions matter
EMBEDDING_SCALE = 0.05  # small beside what the layers add, or a tied model would repeat its input


def random_tensors(config: ModelConfig, seed: int) -> dict[str, Tensor]:
    """Float32 weights under Hugging Face names, the same for the same config and seed."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, shape in checkpoint_shapes(config).items():
        noise = torch.randn(shape, generator=generator)
        tensors[name] = _scaled(config, name, noise)
    return tensors


def random_model(
    config: ModelConfig,
    seed: int,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    apply_rope: ApplyRope = apply_rope,
) -> Model:
    """A model with the weights of `random_tensors`."""
    return Model.from_tensors(config, random_tensors(config, seed), device, dtype, apply_rope)


def _scaled(config: ModelConfig, name: str, noise: Tensor) -> Tensor:
    """Turn standard normal noise into the weight `name`; linear layers keep their input's scale."""
    if name.endswith(("q_norm.weight", "k_norm.weight")):
        return ATTENTION_SCALE * (1.0 + 0.1 * noise)
    if name == "model.norm.weight" and config.tie_word_embeddings:
        # The logits are read out by the small embedding, so the last norm makes up for it.
        return (1.0 + 0.1 * noise) * LOGIT_SCALE / (EMBEDDING_SCALE * config.hidden_size**0.5)
    if name.endswith("norm.weight"):
        return 1.0 + 0.1 * noise
    if name == "model.embed_tokens.weight":
        return EMBEDDING_SCALE * noise
    if name.endswith(".bias"):
        return 0.1 * noise
    fan_in = noise.shape[1]
    if name == "lm_head.weight":
        return noise * LOGIT_SCALE / fan_in**0.5
    if name.endswith(("q_proj.weight", "k_proj.weight")) and not config.qk_norm:
        return noise * ATTENTION_SCALE / fan_in**0.5
    return noise / fan_in**0.5
