"""Owns how a chapter shows a piece of source: the code that runs, read from its own file."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Source:
    """A piece of source in a notebook: highlighted where markdown is shown, else plain text."""

    code: str
    place: str

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {
            "text/markdown": f"`{self.place}`\n\n```python\n{self.code}\n```",
            "text/plain": f"# {self.place}\n{self.code}",
        }


def source(thing: Callable[..., Any] | type, *, docstring: bool = False) -> Source:
    """The source of a function, method or class, and where it stands.

    Without `docstring` the docstrings are left out, those of methods too: the chapter's text says
    what they say. Raises ValueError for things that have no source, such as those written in C.
    """
    thing = inspect.unwrap(thing)  # a decorated function: show what was written, not the wrapper
    try:
        lines = textwrap.dedent(inspect.getsource(thing)).splitlines()
    except (TypeError, OSError) as error:
        raise ValueError(f"{thing!r} has no source that could be shown: {error}") from error
    if not docstring:
        lines = _without_docstrings(lines)
    file = f"{thing.__module__.replace('.', '/')}.py"
    return Source("\n".join(lines).rstrip(), f"{file}: {thing.__qualname__}")


def _without_docstrings(lines: list[str]) -> list[str]:
    gone: set[int] = set()
    for node in ast.walk(ast.parse("\n".join(lines))):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if ast.get_docstring(node) is None or len(node.body) == 1:
            continue  # a docstring that is the whole body can't go: the rest would be no Python
        first = node.body[0]
        assert first.end_lineno is not None
        gone.update(range(first.lineno, first.end_lineno + 1))
        if not lines[first.end_lineno].strip():
            gone.add(first.end_lineno + 1)  # the blank line below it
    return [line for number, line in enumerate(lines, start=1) if number not in gone]
