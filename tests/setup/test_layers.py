"""Imports go one way: chapters -> judge, mini_engine; judge -> mini_engine; and so on inwards."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BASE = {"config", "sampling_params", "trace", "interfaces"}
# What the modules of a room may import from mini_engine besides their own room.
ROOMS = {
    "control": BASE,
    "compute": {*BASE, "control"},
    "text": {*BASE, "compute"},  # which tensors a checkpoint must hold is the model's knowledge
}


def imported(path: Path) -> set[str]:
    """Full names of the modules that a file imports anywhere, also inside functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


@pytest.mark.parametrize("room", list(ROOMS))
def test_a_room_imports_only_what_it_may(room: str) -> None:
    files = sorted((ROOT / "mini_engine" / room).glob("*.py"))
    assert files
    for path in files:
        for name in imported(path):
            if name.startswith("mini_engine."):
                neighbour = name.split(".")[1]
                assert neighbour in ROOMS[room] | {room}, f"{path.name} imports {name}"


def test_the_engine_knows_nothing_of_the_judge() -> None:
    for path in sorted((ROOT / "mini_engine").rglob("*.py")):
        assert not any(name.split(".")[0] == "judge" for name in imported(path)), path


def test_the_control_plane_imports_the_standard_library_and_itself() -> None:
    for path in sorted((ROOT / "mini_engine" / "control").glob("*.py")):
        heavy = {n for n in imported(path) if n.split(".")[0] in ("torch", "numpy", "transformers")}
        assert not heavy, path
