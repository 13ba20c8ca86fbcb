"""Owns the models that checks run on: tiny ones by name, SmolLM2, or a folder in its place.

Loads no torch. In a payload "model" is "smollm2", a tiny model's name, or the path of a folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judge.api import Case

REAL = "smollm2"
NAMES = ("tiny", REAL)
LEAST_POSITIONS = 256  # max_model_len of --mine; the checks need less
LABEL = "SmolLM2"


@dataclass(frozen=True)
class RealModel:
    """A Hugging Face folder that stands in SmolLM2's place."""

    folder: Path
    vocab_size: int

    def case(self, case: Case) -> Case:
        """A case made for SmolLM2 on this model: prompts within its vocabulary."""
        label = case.label.replace(LABEL, self.folder.name)
        return replace(case, label=label, payload=self._placed(case.payload))

    def _placed(self, value: Any, key: Any = None) -> Any:
        if isinstance(value, dict):
            return {name: self._placed(item, name) for name, item in value.items()}
        if key == "model" and value == REAL:
            return str(self.folder)
        if key == "vocab_size":
            return min(value, self.vocab_size)
        if key == "prompt":
            return [token % self.vocab_size for token in value]
        return [self._placed(item) for item in value] if isinstance(value, list) else value


def real_model(text: str) -> RealModel:
    """The model in a folder. Raises ValueError if the engine can't serve it, before any grading."""
    from mini_engine.text.weights import weight_files

    folder = Path(text).expanduser().resolve()
    if not folder.is_dir():
        what = "a file" if folder.exists() else "no folder"
        raise ValueError(
            f"the model {text!r} is {what}; give {', '.join(NAMES)} or the folder of a Hugging "
            "Face model (config.json, *.safetensors)"
        )
    from mini_engine.text.checkpoint import load_config

    try:
        config = load_config(folder)
        weight_files(folder)
    except ValueError as error:
        raise ValueError(f"the model {text!r}: {error}") from error
    if config.max_position_embeddings < LEAST_POSITIONS:
        raise ValueError(
            f"the model {text!r} has {config.max_position_embeddings} positions, the judge "
            f"needs {LEAST_POSITIONS}"
        )
    return RealModel(folder, config.vocab_size)


def chosen(model: str | None) -> tuple[Sequence[str], RealModel | None]:
    """What --model says: the models to run, and the folder in SmolLM2's place, if one is given."""
    if model == "tiny":
        return ("tiny",), None
    return NAMES, None if model in (None, REAL) else real_model(str(model))


def is_real(model: str) -> bool:
    """Whether a payload's model lies in a folder: SmolLM2, or another in its place."""
    return model == REAL or "/" in model


def folder_of(model: str) -> Path:
    """The folder of a payload's real model."""
    if model != REAL:
        return Path(model)
    from mini_engine.config import DEFAULT_MODEL
    from mini_engine.text.fetch import find_model

    return find_model(DEFAULT_MODEL)


def tokenizer_file(model: str) -> Path | None:
    """tokenizer.json of a payload's model, or None."""
    if not is_real(model):
        return None
    file = folder_of(model) / "tokenizer.json"
    return file if file.is_file() else None
