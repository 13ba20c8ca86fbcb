"""Owns the assembly of an engine from a checkpoint and parts: the one place that loads torch."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from mini_engine.compute.device import choose_device
from mini_engine.compute.kv_cache import choose_num_blocks
from mini_engine.compute.model import ApplyRope, Model, apply_rope
from mini_engine.compute.runner import ModelRunner
from mini_engine.config import EngineConfig, ModelConfig
from mini_engine.parts import EngineParts
from mini_engine.text.checkpoint import find_model, load_config, load_tokenizer, load_weights

LONGEST_DEFAULT = 8192
LONGEST_WITH_GRAPHS = 1024  # every replayed step reads this many tokens of every request


@dataclass(frozen=True)
class Assembled:
    """What an engine is made of; in `config` nothing is None any more."""

    config: EngineConfig
    runner: ModelRunner
    tokenizer: Any
    eos_token_ids: tuple[int, ...]
    vocab_size: int


def assemble(
    model: str | Path | Model,
    config: EngineConfig,
    parts: EngineParts,
    *,
    tokens_only: bool = False,
) -> Assembled:
    """Load the model (unless it is one already), choose sizes, and build the runner."""
    device = choose_device(config.device)
    if isinstance(model, Model):
        loaded, tokenizer = model, None
    else:
        dtype, rope = getattr(torch, config.dtype), parts.resolve("rope")
        loaded, tokenizer = load_model(str(model), device, dtype, rope, tokens_only=tokens_only)
    device, dtype = loaded.device, loaded.dtype
    config = resolve_sizes(config, loaded.config, device, dtype)
    assert config.num_blocks is not None
    # Graphs fill batches up with rows that belong to nobody; those write to a block of their own.
    num_blocks = config.num_blocks + config.cuda_graphs
    kv_cache = parts.resolve("kv_cache")(
        loaded.config, num_blocks, config.block_size, dtype=dtype, device=device
    )
    graph_runner = None
    if config.cuda_graphs:
        graph_runner = parts.resolve("graph_runner")(loaded, kv_cache, config)
    runner = ModelRunner(
        loaded,
        kv_cache,
        build_batch=parts.resolve("build_batch"),
        attention=parts.resolve("attention")(loaded.config, device),
        sampler=parts.resolve("sampler")(),
        tell_logprobs=parts.resolve("token_logprobs"),
        graph_runner=graph_runner,
    )
    return Assembled(
        config, runner, tokenizer, loaded.config.eos_token_ids, loaded.config.vocab_size
    )


def load_model(
    name: str,
    device: torch.device,
    dtype: torch.dtype,
    rope: ApplyRope = apply_rope,
    *,
    tokens_only: bool = False,
) -> tuple[Model, Any]:
    """The model and tokenizer of a folder, a hub id or the default; never random weights.

    With `tokens_only` there is no tokenizer: None.
    """
    folder = find_model(name)
    config = load_config(folder)
    weights = load_weights(folder, config, dtype)
    tokenizer = None if tokens_only else load_tokenizer(folder)
    return Model.from_tensors(config, weights, device, dtype, rope), tokenizer


def resolve_sizes(
    config: EngineConfig, model: ModelConfig, device: torch.device, dtype: torch.dtype
) -> EngineConfig:
    """Fill in `max_model_len` and `num_blocks`; refuse a length that the model was not made for."""
    default = LONGEST_WITH_GRAPHS if config.cuda_graphs else LONGEST_DEFAULT
    longest = config.max_model_len or min(model.max_position_embeddings, default)
    if longest > model.max_position_embeddings:
        raise ValueError(
            f"max_model_len={longest}, but the model has {model.max_position_embeddings} positions"
        )
    chosen: Literal["cpu", "cuda"] = "cuda" if device.type == "cuda" else "cpu"
    config = dataclasses.replace(config, max_model_len=longest, device=chosen)
    if config.num_blocks is None:
        num_blocks = choose_num_blocks(model, config, device, dtype)
        config = dataclasses.replace(config, num_blocks=num_blocks)
    return config
