"""Owns what has to hold for the source map: everything that it names is there, as it says."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

from source_map_code import Function, Sources, calls, parameters, quote_differs

from mini_engine.show.source_map import Reference, SourceMap

ROOT = Path(__file__).resolve().parents[1]
NEAREST = 3  # places that are named for something that is gone


def problems(found: SourceMap, sources: Mapping[str, Sources]) -> list[str]:
    """What is wrong with the references, calls and signatures of the engines in `sources`."""
    wrong = []
    for reference in found.references:
        there = sources.get(reference.engine)
        if there is not None and there.find(reference) is None:
            wrong.append(_gone(reference, there))
    for call in found.calls:
        there = sources.get(call.caller.engine)
        code = there.find(call.caller) if there else None
        name = call.callee.symbol.rpartition(".")[2]
        if code is not None and not calls(code, name):
            wrong.append(f"{call.caller} does not call {name}")
    for quote in found.signatures:
        there = sources.get(quote.of.engine)
        code = there.find(quote.of) if there else None
        if code is None:
            continue  # reported above as gone, or not looked at
        why = quote_differs(quote.text, code) if isinstance(code, Function) else "it is no function"
        if why:
            wrong.append(f"{quote.of} is quoted with {quote.text}, but {why}")
    return wrong


def _gone(reference: Reference, there: Sources) -> str:
    what = "name" if there.tree(reference.file) else "file"
    nearest = ", ".join(map(str, there.elsewhere(reference)[:NEAREST]))
    return f"{reference}: no such {what}; now in {nearest or 'no file under this name'}"


def moved(found: SourceMap, engine: str, before: Sources, after: Sources) -> list[str]:
    """What another version of an engine does otherwise than the mapped one, one line each."""
    changes = problems(found, {engine: after})
    for reference in found.references:
        if reference.engine == engine:
            old, new = before.find(reference), after.find(reference)
            if isinstance(old, Function) and isinstance(new, Function):
                changes += _other_parameters(reference, old, new)
    return changes


def _other_parameters(reference: Reference, old: Function, new: Function) -> list[str]:
    was, now = parameters(old), parameters(new)
    gone = [text for text in was if text not in now]
    added = [text for text in now if text not in was]
    if not gone and not added:
        return []
    words = [f"no longer {', '.join(gone)}"] if gone else []
    words += [f"new {', '.join(added)}"] if added else []
    return [f"{reference} has other parameters: {'; '.join(words)}"]


def own_sources() -> Sources:
    """This project's files."""
    return Sources(ROOT)


def line_of(reference: Reference, there: Sources) -> int:
    """The line on which a reference stands; 1 for a whole file."""
    code = there.find(reference)
    return code.lineno if isinstance(code, ast.stmt) else 1
