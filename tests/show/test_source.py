"""Owns the proof that chapters show the source that runs, whole but for its docstrings."""

from __future__ import annotations

import ast
import inspect

import pytest

from mini_engine.compute.model import MLP, RMSNorm, SelfAttention, apply_rope
from mini_engine.compute.naive import generate_cached
from mini_engine.show.source import source


@pytest.mark.parametrize("thing", [apply_rope, SelfAttention.forward, RMSNorm, generate_cached])
def test_every_line_stands_in_the_file_and_nothing_but_docstrings_is_missing(thing: object) -> None:
    shown = source(thing)  # type: ignore[arg-type]
    whole = source(thing, docstring=True)  # type: ignore[arg-type]
    file_lines = {line.strip() for line in inspect.getsource(inspect.getmodule(thing)).splitlines()}
    assert {line.strip() for line in whole.code.splitlines()} <= file_lines
    stripped = ast.parse(whole.code)
    for node in ast.walk(stripped):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            node.body = node.body[1:]
    assert ast.dump(ast.parse(shown.code)) == ast.dump(stripped)


def test_docstrings_go_and_comments_stay() -> None:
    code = source(apply_rope).code
    assert "neighbours" not in code
    assert "# each [num_tokens, heads, head_dim / 2]" in code
    assert "neighbours" in source(apply_rope, docstring=True).code


def test_the_place_and_both_forms_are_given() -> None:
    bundle = source(MLP.forward)._repr_mimebundle_()
    place = "mini_engine/compute/model.py: MLP.forward"
    assert bundle["text/plain"].startswith(f"# {place}\ndef forward")
    assert bundle["text/markdown"].startswith(f"`{place}`")
    assert "```python\ndef forward" in bundle["text/markdown"]


def test_a_body_that_is_only_a_docstring_stays() -> None:
    ast.parse(source(OnlyDocstring).code)
    assert "stays" in source(OnlyDocstring).code


def test_what_has_no_source_is_refused() -> None:
    with pytest.raises(ValueError, match="has no source"):
        source(len)


class OnlyDocstring:
    """This stays."""
