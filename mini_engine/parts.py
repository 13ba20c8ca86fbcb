"""Owns the list of pluggable parts: which class or function fills each slot of the engine.

A slot holds either the thing itself or an import string "module:name". The defaults are the
reference parts, as strings, so that listing them loads nothing: a slot's module is imported when an
engine is assembled.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

Part = str | Callable[..., Any]


@dataclass(frozen=True)
class EngineParts:
    """The part in each slot; how it is called stands below it, what it must do in interfaces."""

    block_pool: Part = "mini_engine.control.block_pool:BlockPool"
    # (num_blocks)
    prefix_cache: Part = "mini_engine.control.prefix_cache:PrefixCache"
    # (block_pool, block_size, enabled=)
    scheduler: Part = "mini_engine.control.scheduler:Scheduler"
    # (config, prefix_cache)
    build_batch: Part = "mini_engine.compute.batch:build_batch"
    # the function itself, see interfaces.BuildBatch
    kv_cache: Part = "mini_engine.compute.kv_cache:PagedKVCache"
    # (model_config, num_blocks, block_size, dtype=, device=)
    attention: Part = "mini_engine.compute.attention:PagedAttention"
    # (model_config, device)
    rope: Part = "mini_engine.compute.model:apply_rope"
    # the function itself, see compute.model.ApplyRope; a Model given ready-made keeps its own
    sampler: Part = "mini_engine.compute.sampler:Sampler"
    # ()
    token_logprobs: Part = "mini_engine.compute.logprobs:token_logprobs"
    # the function itself, see interfaces.TellLogprobs
    graph_runner: Part = "mini_engine.compute.cuda_graphs:GraphRunner"
    # (model, kv_cache, config); only where config.cuda_graphs is set
    detokenizer: Part = "mini_engine.text.detokenizer:IncrementalDetokenizer"
    # (tokenizer, prompt_token_ids)
    stop_checker: Part = "mini_engine.text.stop_checker:StopChecker"
    # (stops, include)

    def resolve(self, slot: str) -> Any:
        """The class or function in a slot, imported if it was given as a string.

        Raises ValueError for an unknown slot or a malformed string, ImportError or AttributeError
        with the string in its message if there is nothing at that place.
        """
        slots = [field.name for field in dataclasses.fields(self)]
        if slot not in slots:
            raise ValueError(f"there is no slot {slot!r}; the slots are {', '.join(slots)}")
        part = getattr(self, slot)
        return import_part(part) if isinstance(part, str) else part


def import_part(place: str) -> Any:
    """Import "module:name", or "path/to/file.py:name" for a file outside any package."""
    module_name, colon, name = place.rpartition(":")
    if not colon or not module_name or not name:
        raise ValueError(f"a part is given as 'module:name', got {place!r}")
    if module_name.endswith(".py"):
        module = _load_file(Path(module_name))
    else:
        module = importlib.import_module(module_name)
    if not hasattr(module, name):
        raise AttributeError(f"{module_name} has no {name!r} (part {place!r})")
    return getattr(module, name)


def _load_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ImportError(f"no Python file at {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
