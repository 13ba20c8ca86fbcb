"""Owns the table of the parts that a learner writes: file, name, slot, and how the part fits in it.

Loads no torch by itself. Later rows win where two fill one slot: attention over blocks replaces
attention over contiguous keys, as in the course. Penalties stand on top of either sampler,
slot mapping and logits rows on top of the reference's batch, until the batch is the learner's.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from mini_engine.parts import EngineParts, import_part


@dataclass(frozen=True)
class LearnerPart:
    """`symbol` of `file` fills `slot`; the `adapter`, "module:name" makes it fit.

    One `on_top` stands before what fills the slot without it, and its adapter is given that too.
    """

    file: str
    symbol: str
    slot: str
    adapter: str | None = None
    on_top: bool = False

    def fitted(self, thing: Any, below: Any = None) -> Any:
        """The learner's class or function as the slot takes it; `below` is None: the reference."""
        if self.adapter is None:
            return thing
        adapter = import_part(self.adapter)
        return adapter(thing, below) if self.on_top else adapter(thing)


ADAPTERS = "mini_engine.compute.adapters"
SAMPLERS = "mini_engine.compute.sampler_adapters"
LEARNER_PARTS = (
    LearnerPart("kv_cache.py", "apply_rope", "rope"),
    LearnerPart(
        "kv_cache.py", "attention_over_contiguous", "attention", f"{ADAPTERS}:contiguous_attention"
    ),
    LearnerPart("paged_kv.py", "BlockPool", "block_pool"),
    LearnerPart(
        "paged_kv.py", "slot_mapping", "build_batch", f"{ADAPTERS}:batch_builder", on_top=True
    ),
    LearnerPart(
        "paged_kv.py", "paged_attention", "attention", f"{ADAPTERS}:single_request_attention"
    ),
    LearnerPart(
        "batching.py", "logits_rows", "build_batch", f"{ADAPTERS}:row_chooser", on_top=True
    ),
    LearnerPart("batching.py", "build_batch", "build_batch"),
    LearnerPart("batching.py", "varlen_attention", "attention", f"{ADAPTERS}:varlen_attention"),
    LearnerPart("scheduler.py", "Scheduler", "scheduler"),
    LearnerPart("prefix_cache.py", "PrefixCache", "prefix_cache"),
    LearnerPart("sampling.py", "filter_logits", "sampler", f"{SAMPLERS}:filtering_sampler"),
    LearnerPart("sampling.py", "sample", "sampler", f"{SAMPLERS}:drawing_sampler"),
    LearnerPart(
        "sampling.py", "apply_penalties", "sampler", f"{SAMPLERS}:penalizing_sampler", on_top=True
    ),
    LearnerPart("sampling.py", "token_logprobs", "token_logprobs"),
    LearnerPart("text.py", "IncrementalDetokenizer", "detokenizer"),
    LearnerPart("text.py", "StopChecker", "stop_checker"),
    LearnerPart("graphs.py", "StaticBuffers", "graph_runner", f"{ADAPTERS}:with_buffers"),
    LearnerPart("graphs.py", "GraphRunner", "graph_runner"),
)


def engine_parts(things: Mapping[str, Any]) -> EngineParts:
    """The reference's parts, with `things` (a class or function for each symbol) in their slots.

    Symbols that fill no slot are left out.
    """
    filled: dict[str, Any] = {}
    for row in LEARNER_PARTS:
        if row.symbol in things:
            filled[row.slot] = row.fitted(things[row.symbol], filled.get(row.slot))
    return EngineParts(**filled)


def placed(rows: Iterable[LearnerPart]) -> list[LearnerPart]:
    """Those rows that really get a slot: the last one of each, and what stands on top of it."""
    kept: list[LearnerPart] = []
    for row in rows:
        if not row.on_top:
            kept = [other for other in kept if other.slot != row.slot]
        kept.append(row)
    return kept


def load_parts(folder: Path, rows: Iterable[LearnerPart]) -> dict[str, Any]:
    """The classes and functions of a learner's files, by symbol. Runs the learner's code here.

    The files may import each other. Raises whatever they raise, AttributeError for a missing name.
    """
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # last, so that no file of the learner hides a library
    modules: dict[str, ModuleType] = {}
    things = {}
    for row in rows:
        if row.file not in modules:
            modules[row.file] = _load(folder / row.file)
        if not hasattr(modules[row.file], row.symbol):
            raise AttributeError(f"{row.file} has no {row.symbol}")
        things[row.symbol] = getattr(modules[row.file], row.symbol)
    return things


def _load(path: Path) -> ModuleType:
    """Run the file as it is now: cached bytecode of an earlier save must not stand in for it."""
    module = sys.modules.get(path.stem)
    if module is not None and module.__dict__.get("__file__") == str(path):
        return module  # another file of the learner's has imported it
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    except BaseException:
        del sys.modules[path.stem]
        raise
    return module


def written_parts(folder: Path) -> tuple[list[LearnerPart], list[str]]:
    """The rows whose part is written, in a folder of practice files, and a sentence on each other.

    Written means: it stands in its file, and raises ExerciseNotStarted nowhere. Runs no code of the
    learner's. Raises FileNotFoundError if there is no such folder.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}; your parts lie in work/practice")
    written, others = [], []
    for row in LEARNER_PARTS:
        try:
            body = ast.parse((folder / row.file).read_bytes()).body
        except FileNotFoundError:
            others.append(f"{row.symbol}: there is no {row.file}")
            continue
        except (SyntaxError, ValueError) as error:
            others.append(f"{row.symbol}: {row.file} is no valid Python ({error})")
            continue
        found = [node for node in body if getattr(node, "name", None) == row.symbol]
        if not found:
            others.append(f"{row.symbol}: {row.file} does not define it")
        elif _raises_not_started(found[-1]):
            others.append(f"{row.symbol}: {_how_far(found[-1])}")
        else:
            written.append(row)
    return written, others


def _raises_not_started(node: ast.AST) -> bool:
    raised = [n.exc for n in ast.walk(node) if isinstance(n, ast.Raise) and n.exc is not None]
    names = [n.id for exc in raised for n in ast.walk(exc) if isinstance(n, ast.Name)]
    return "ExerciseNotStarted" in names


def _how_far(node: ast.AST) -> str:
    """ "not started", or which methods of a class are missing."""
    functions = [n for n in getattr(node, "body", []) if isinstance(n, ast.FunctionDef)]
    missing = [n.name for n in functions if _raises_not_started(n)]
    if len(missing) in (0, len(functions)):
        return "not started"
    return f"not finished ({', '.join(missing)})"


def use_folder(folder: Path) -> tuple[EngineParts, list[str]]:
    """An engine's parts from a learner's folder, and lines that say what is whose.

    A part that isn't written, or whose file can't be run, is the reference's: one broken file does
    not take the others with it.
    """
    written, lines = written_parts(folder)
    lines = [f"reference: {line}" for line in lines]
    things: dict[str, Any] = {}
    for file in dict.fromkeys(row.file for row in written):
        rows = [row for row in written if row.file == file]
        try:
            things |= load_parts(folder.resolve(), rows)
        except Exception as error:  # whatever a learner's file raises
            what = f"{type(error).__name__}: {error}"
            lines.append(f"reference: {file} can't be run ({what})")
    rows = [row for row in LEARNER_PARTS if row.symbol in things]
    used = placed(rows)
    lines += [f"yours: {row.symbol} of {row.file}, as {row.slot}" for row in used]
    lines += [f"not used: {row.symbol}; a later part of yours fills {row.slot}"
              for row in rows if row not in used]  # fmt: skip
    return engine_parts(things), lines
