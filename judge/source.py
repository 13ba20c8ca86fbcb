"""Owns finding a reference part in its source: the part, and what of its module it stands on.

Nothing is imported but the packages above the module, so that showing a tensor function needs no
torch.
"""

from __future__ import annotations

import ast
import importlib.util
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Source:
    """Pieces of one file, in its order, as they stand there."""

    file: Path
    pieces: tuple[str, ...]


def reference_source(module: str, symbols: tuple[str, ...]) -> Source:
    """The definitions of `symbols` in a module, and every other definition of it that they use.

    Raises LookupError if the module has no such definition.
    """
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        raise LookupError(f"there is no source of {module}")
    file = Path(found.origin)
    text = file.read_text("utf-8")
    nodes = {name: node for node in ast.parse(text).body for name in _names(node)}
    missing = [symbol for symbol in symbols if symbol not in nodes]
    if missing:
        raise LookupError(f"{module} defines no {', '.join(missing)}")
    used, todo = set(symbols), list(symbols)
    while todo:
        for node in ast.walk(nodes[todo.pop()]):
            if isinstance(node, ast.Name) and node.id in nodes and node.id not in used:
                used.add(node.id)
                todo.append(node.id)
    chosen = {_first_line(nodes[name]): nodes[name] for name in used}
    lines = text.splitlines()
    pieces = ["\n".join(lines[start - 1 : chosen[start].end_lineno]) for start in sorted(chosen)]
    return Source(file, tuple(pieces))


def _names(node: ast.stmt) -> list[str]:
    """What a statement at the top of a module defines."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])
