"""Owns showing a whole answer in few lines of bounded width; for --repro."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from judge.compare import show
from judge.wire import Raised

WIDTH = 96
MOST = 10  # items of one list or mapping
INDENT = "  "


def brief(value: Any, depth: int = 0) -> list[str]:
    """Lines for a value: on one line where it fits, else item by item, the first MOST of them."""
    if isinstance(value, Raised):
        lines = [f"it raised {show(value)}"]
        return lines + [f"{INDENT}{f.file}:{f.line} in {f.function}" for f in value.frames if f.own]
    text = show(value, 100_000)
    if len(text) + len(INDENT) * depth <= WIDTH or depth > 2:
        return [show(value, WIDTH - len(INDENT) * depth)]
    if isinstance(value, dict):
        return _items(((f"{key}: ", item) for key, item in value.items()), len(value), depth)
    if isinstance(value, (list, tuple)):
        return _items(((f"[{n}] ", item) for n, item in enumerate(value)), len(value), depth)
    return [show(value, WIDTH - len(INDENT) * depth)]


def _items(pairs: Iterable[tuple[str, Any]], count: int, depth: int) -> list[str]:
    lines: list[str] = []
    for number, (name, item) in enumerate(pairs):
        if number == MOST and count > MOST:
            return [*lines, f"... {count - MOST} more"]
        inner = brief(item, depth + 1)
        if len(inner) == 1 and len(name) + len(inner[0]) + len(INDENT) * depth <= WIDTH:
            lines.append(name + inner[0])
        else:
            lines += [name.rstrip(), *(INDENT + line for line in inner)]
    return lines
