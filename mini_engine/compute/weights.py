"""Owns the way from a checkpoint's tensors to the model's parameters: names, shapes and fusing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

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


def is_surplus(config: ModelConfig, name: str) -> bool:
    """Whether a checkpoint may hold this tensor though the model has no use for it.

    Old checkpoints keep the RoPE frequencies; tied ones may repeat the embedding as `lm_head`.
    """
    tied_head = name == "lm_head.weight" and config.tie_word_embeddings
    return tied_head or name.endswith("rotary_emb.inv_freq")


def check_tensors(
    config: ModelConfig, tensors: Mapping[str, Tensor], source: object = "the checkpoint"
) -> None:
    """Raise ValueError, with a list, unless `source` held exactly the model's tensors.

    Names, shapes and floating point are compared; surplus as in `is_surplus` is passed over.
    """
    shapes = checkpoint_shapes(config)
    missing = [name for name in shapes if name not in tensors]
    unexpected = [name for name in tensors if name not in shapes and not is_surplus(config, name)]
    wrong = []
    for name, shape in shapes.items():
        tensor = tensors.get(name)
        if tensor is None:
            continue
        if tuple(tensor.shape) != shape:
            wrong.append(f"{name} {list(tensor.shape)}, expected {list(shape)}")
        elif not tensor.is_floating_point():
            wrong.append(f"{name} is {tensor.dtype}, expected floating point")
    complaints = [
        f"{title}: {shorten(names)}"
        for title, names in (("missing", missing), ("unexpected", unexpected), ("wrong", wrong))
        if names
    ]
    if complaints:
        raise ValueError(
            f"the weights of {source} do not fit its config.json; {'; '.join(complaints)}"
        )


def shorten(names: Sequence[str], most: int = 8) -> str:
    """The first names of a list, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


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
