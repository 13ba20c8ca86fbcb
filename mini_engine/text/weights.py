"""Owns the weights of a model folder: which tensors there must be, and reading exactly those."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mini_engine.config import ModelConfig

if TYPE_CHECKING:
    import torch
    from torch import Tensor

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file of a model folder. Raises ValueError if there is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise ValueError(
            f"there is no {path}; a model is a Hugging Face folder with {path.name}"
        ) from None
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} must hold a JSON object, got {type(content).__name__}")
    return content


def expected_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Every tensor of such a model under its Hugging Face name, with its shape.

    `lm_head.weight` is absent when it is tied to the embedding.
    """
    hidden, middle, head_dim = config.hidden_size, config.intermediate_size, config.head_dim
    query_rows, kv_rows = config.num_heads * head_dim, config.num_kv_heads * head_dim
    linears = {
        "self_attn.q_proj": (query_rows, hidden, config.attention_bias),
        "self_attn.k_proj": (kv_rows, hidden, config.attention_bias),
        "self_attn.v_proj": (kv_rows, hidden, config.attention_bias),
        "self_attn.o_proj": (hidden, query_rows, config.attention_bias),
        "mlp.gate_proj": (middle, hidden, config.mlp_bias),
        "mlp.up_proj": (middle, hidden, config.mlp_bias),
        "mlp.down_proj": (hidden, middle, config.mlp_bias),
    }
    norms = {"input_layernorm": hidden, "post_attention_layernorm": hidden}
    if config.qk_norm:
        norms |= {"self_attn.q_norm": head_dim, "self_attn.k_norm": head_dim}
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (config.vocab_size, hidden),
        "model.norm.weight": (hidden,),
    }
    for layer in range(config.num_layers):
        prefix = f"model.layers.{layer}."
        for name, (rows, columns, has_bias) in linears.items():
            shapes[f"{prefix}{name}.weight"] = (rows, columns)
            if has_bias:
                shapes[f"{prefix}{name}.bias"] = (rows,)
        for name, width in norms.items():
            shapes[f"{prefix}{name}.weight"] = (width,)
    if not config.tie_word_embeddings:
        shapes["lm_head.weight"] = (config.vocab_size, hidden)
    return shapes


def load_weights(folder: Path, config: ModelConfig, dtype: torch.dtype) -> dict[str, Tensor]:
    """The weights in `folder` under their Hugging Face names, cast to `dtype`, on the CPU.

    Exactly the tensors of `expected_shapes`: a file that lacks one, has another or another shape is
    refused with a list (ValueError). Nothing is ever filled in. A tied `lm_head.weight` that the
    file repeats is dropped, as are the `rotary_emb.inv_freq` tables of old files.
    """
    expected = expected_shapes(config)
    weights: dict[str, Tensor] = {}
    unexpected, wrong = [], []
    for name, tensor in _read_tensors(Path(folder)):
        if name.endswith("rotary_emb.inv_freq"):
            continue
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        if name not in expected:
            unexpected.append(name)
        elif tuple(tensor.shape) != expected[name]:
            wrong.append(f"{name} {list(tensor.shape)}, expected {list(expected[name])}")
        elif not tensor.is_floating_point():
            wrong.append(f"{name} is {tensor.dtype}, expected floating point")
        else:
            weights[name] = tensor.to(dtype)
    seen_wrong = {entry.split(" ", 1)[0] for entry in wrong}
    missing = [name for name in expected if name not in weights and name not in seen_wrong]
    complaints = [
        f"{title}: {_shorten(names)}"
        for title, names in (("missing", missing), ("unexpected", unexpected), ("wrong", wrong))
        if names
    ]
    if complaints:
        raise ValueError(
            f"the weights in {folder} do not fit its config.json; {'; '.join(complaints)}"
        )
    return weights


def _read_tensors(folder: Path) -> Iterator[tuple[str, Tensor]]:
    from safetensors import SafetensorError, safe_open

    for path in _weight_files(folder):
        try:
            with safe_open(path, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118 (safe_open is no mapping)
                    yield name, file.get_tensor(name)
        except SafetensorError as error:
            raise ValueError(f"{path} is damaged or no safetensors file: {error}") from error


def _weight_files(folder: Path) -> list[Path]:
    if (folder / INDEX).is_file():
        index = read_json(folder / INDEX)
        files = [folder / name for name in sorted(set(index.get("weight_map", {}).values()))]
    else:
        files = [folder / WEIGHTS]
    absent = [path.name for path in files if not path.is_file()]
    if absent or not files:
        others = [p.name for p in sorted(folder.glob("*.bin")) + sorted(folder.glob("*.gguf"))]
        hint = f" ({_shorten(others)} can't be read; safetensors only)" if others else ""
        raise ValueError(f"{folder} lacks its weights: no {_shorten(absent) or WEIGHTS}{hint}")
    return files


def _shorten(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
