"""Owns the way from a checkpoint's tensors to the model's parameters: names, shapes and fusing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from mini_engine.config import ModelConfig

# Rows of a parameter, in order: (name of the tensor in a Hugging Face checkpoint, its shape).
Parts = list[tuple[str, tuple[int, ...]]]


def parameter_parts(config: ModelConfig) -> Iterator[tuple[str, Parts]]:
    """Each parameter of the model with the checkpoint tensors that lie below one another in it.

    Tied models have no `lm_head` of their own.
    """
    hidden, inner, head_dim = config.hidden_size, config.intermediate_size, config.head_dim
    queries, keys = config.num_heads * head_dim, config.num_kv_heads * head_dim
    yield "embed.weight", [("model.embed_tokens.weight", (config.vocab_size, hidden))]
    for number in range(config.num_layers):
        ours, theirs = f"layers.{number}", f"model.layers.{number}"
        yield f"{ours}.input_norm.weight", [(f"{theirs}.input_layernorm.weight", (hidden,))]
        for kind in ("weight", "bias") if config.attention_bias else ("weight",):
            inputs = (hidden,) if kind == "weight" else ()
            yield (
                f"{ours}.attention.qkv_proj.{kind}",
                [
                    (f"{theirs}.self_attn.q_proj.{kind}", (queries, *inputs)),
                    (f"{theirs}.self_attn.k_proj.{kind}", (keys, *inputs)),
                    (f"{theirs}.self_attn.v_proj.{kind}", (keys, *inputs)),
                ],
            )
            inputs = (queries,) if kind == "weight" else ()
            yield (
                f"{ours}.attention.o_proj.{kind}",
                [(f"{theirs}.self_attn.o_proj.{kind}", (hidden, *inputs))],
            )
        if config.qk_norm:
            for norm in ("q_norm", "k_norm"):
                name = f"{theirs}.self_attn.{norm}.weight"
                yield f"{ours}.attention.{norm}.weight", [(name, (head_dim,))]
        name = f"{theirs}.post_attention_layernorm.weight"
        yield f"{ours}.post_attention_norm.weight", [(name, (hidden,))]
        for kind in ("weight", "bias") if config.mlp_bias else ("weight",):
            inputs = (hidden,) if kind == "weight" else ()
            yield (
                f"{ours}.mlp.gate_up_proj.{kind}",
                [
                    (f"{theirs}.mlp.gate_proj.{kind}", (inner, *inputs)),
                    (f"{theirs}.mlp.up_proj.{kind}", (inner, *inputs)),
                ],
            )
            inputs = (inner,) if kind == "weight" else ()
            yield (
                f"{ours}.mlp.down_proj.{kind}",
                [(f"{theirs}.mlp.down_proj.{kind}", (hidden, *inputs))],
            )
    yield "norm.weight", [("model.norm.weight", (hidden,))]
    if not config.tie_word_embeddings:
        yield "lm_head.weight", [("lm_head.weight", (config.vocab_size, hidden))]


def checkpoint_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Names and shapes of all tensors that a checkpoint of this model must hold."""
    return {name: shape for _, parts in parameter_parts(config) for name, shape in parts}


def check_tensors(config: ModelConfig, tensors: Mapping[str, Tensor]) -> None:
    """Raise ValueError unless the checkpoint holds exactly the model's tensors in their shapes.

    Two kinds of surplus are known and harmless: old checkpoints keep the RoPE frequencies, and tied
    ones may keep a second copy of the embedding as `lm_head.weight`.
    """
    shapes = checkpoint_shapes(config)
    missing = [name for name in shapes if name not in tensors]
    surplus = [
        name
        for name in tensors
        if name not in shapes
        and not name.endswith("rotary_emb.inv_freq")
        and not (name == "lm_head.weight" and config.tie_word_embeddings)
    ]
    if missing or surplus:
        raise ValueError(
            f"the checkpoint does not fit its config: {len(missing)} of {len(shapes)} tensors are "
            f"missing{_examples(missing)}, {len(surplus)} are unexpected{_examples(surplus)}; "
            "is it complete, and does config.json belong to it?"
        )
    for name, shape in shapes.items():
        if tuple(tensors[name].shape) != shape:
            raise ValueError(
                f"tensor {name!r} has shape {tuple(tensors[name].shape)}, "
                f"the config asks for {shape}"
            )


def fuse_weights(
    config: ModelConfig,
    tensors: Mapping[str, Tensor],
    device: torch.device | str,
    dtype: torch.dtype,
) -> dict[str, Tensor]:
    """The model's parameters by name, on `device` in `dtype`, from a checkpoint's tensors.

    Raises ValueError as `check_tensors` does. A parameter that needs neither fusing nor conversion
    shares its memory with the checkpoint's tensor.
    """
    check_tensors(config, tensors)
    weights = {}
    for name, parts in parameter_parts(config):
        rows = [tensors[part].detach().to(device, dtype) for part, _ in parts]
        weights[name] = rows[0] if len(rows) == 1 else torch.cat(rows)
    return weights


def _examples(names: list[str]) -> str:
    if not names:
        return ""
    more = ", ..." if len(names) > 3 else ""
    return f" ({', '.join(names[:3])}{more})"
