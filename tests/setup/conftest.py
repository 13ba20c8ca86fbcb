"""A small published course."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def published(tmp_path: Path) -> Path:
    for name in ("chapters/00_life.ipynb", "practice/life.py", "practice/judge.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{name}, first version\n")
    (tmp_path / "practice" / "__pycache__").mkdir()
    (tmp_path / "practice" / "__pycache__" / "life.pyc").touch()
    return tmp_path
