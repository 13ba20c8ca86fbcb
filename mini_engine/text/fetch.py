"""Owns where model folders come from: a path, the hub, or the default model."""

from __future__ import annotations

import os
from pathlib import Path

from mini_engine.config import DEFAULT_MODEL
from mini_engine.text.default_model import ModelNotAvailable, default_model

HUB_FILES = ["*.json", "*.safetensors", "*.jinja", "*.model", "merges.txt", "vocab.txt"]


def find_model(name: str) -> Path:
    """The folder of a model, fetched first if need be.

    `name` is "smollm2-135m-instruct", a folder, or a hub id such as "Qwen/Qwen3-0.6B". Raises
    ValueError for a name that can't be either, ModelNotAvailable if fetching or converting fails.
    """
    if not isinstance(name, (str, os.PathLike)):
        raise TypeError(f"a model is named by a string, got {name!r}")
    name = str(name).strip()
    if not name:
        raise ValueError(f"the model's name is empty; known by name: {DEFAULT_MODEL}")
    if name == DEFAULT_MODEL:
        return default_model()
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if path.exists():
        raise ValueError(f"{name} is a file; give the folder that holds config.json")
    if name.startswith((".", "~", os.sep)) or name.count("/") > 1:
        raise ValueError(f"there is no folder {path}; known by name: {DEFAULT_MODEL}")
    return _from_hub(name)


def _from_hub(name: str) -> Path:
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError
    except ImportError as error:
        raise ModelNotAvailable(
            f"{name!r} is no folder here, and fetching from the hub needs huggingface_hub: {error}"
        ) from error
    try:
        return Path(snapshot_download(name, allow_patterns=HUB_FILES, ignore_patterns=["*/*"]))
    except HFValidationError as error:
        raise ValueError(
            f"{name!r} is neither a folder, nor {DEFAULT_MODEL!r}, nor a hub id: {error}"
        ) from error
    except LocalEntryNotFoundError as error:
        raise ModelNotAvailable(
            f"{name!r} is no folder, and as a hub id it is not in the cache and the hub can't be "
            f"reached; {DEFAULT_MODEL!r} comes from pip's index instead"
        ) from error
    except OSError as error:  # repository missing or gated, HTTP errors
        raise ModelNotAvailable(f"the hub gave nothing for {name!r}: {error}") from error
