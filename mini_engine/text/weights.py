"""Owns the reading of a model folder's weights; which there must be, compute/weights says."""

from __future__ import annotations

import json
from collections.abc import Iterator
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


def load_weights(folder: Path, config: ModelConfig, dtype: torch.dtype) -> dict[str, Tensor]:
    """The weights in `folder` under their Hugging Face names, cast to `dtype`, on the CPU.

    A folder that lacks a tensor of the model, or has another, or one of another shape, is refused
    with a list (ValueError). Nothing is ever filled in.
    """
    from mini_engine.compute.weights import check_tensors, is_surplus

    tensors = {n: t for n, t in _read_tensors(Path(folder)) if not is_surplus(config, n)}
    check_tensors(config, tensors, folder)
    return {name: tensor.to(dtype) for name, tensor in tensors.items()}


def _read_tensors(folder: Path) -> Iterator[tuple[str, Tensor]]:
    from safetensors import SafetensorError, safe_open

    for path in weight_files(folder):
        try:
            with safe_open(path, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118 (safe_open is no mapping)
                    yield name, file.get_tensor(name)
        except SafetensorError as error:
            raise ValueError(f"{path} is damaged or no safetensors file: {error}") from error


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a model folder. Raises ValueError if one is missing."""
    from mini_engine.compute.weights import shorten

    if (folder / INDEX).is_file():
        index = read_json(folder / INDEX)
        files = [folder / name for name in sorted(set(index.get("weight_map", {}).values()))]
    else:
        files = [folder / WEIGHTS]
    absent = [path.name for path in files if not path.is_file()]
    if absent or not files:
        others = [p.name for p in sorted(folder.glob("*.bin")) + sorted(folder.glob("*.gguf"))]
        hint = f" ({shorten(others)} can't be read; safetensors only)" if others else ""
        raise ValueError(f"{folder} lacks its weights: no {shorten(absent) or WEIGHTS}{hint}")
    return files
