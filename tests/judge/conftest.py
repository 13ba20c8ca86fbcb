"""Owns a small checkout of its own, so that the command line is tried on real files."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from judge import practice
from judge.exercises import find
from judge.sandbox import ROOT

PACKAGES = ("judge", "mini_engine")


def solve(folder: Path, exercise_id: str, alternative: str) -> None:
    """Put an alternative of the judge's own tests between the marks of an exercise."""
    (exercise,) = find(exercise_id)
    file = folder / exercise.file
    code = (ROOT / "tests/alternatives" / exercise_id / alternative).read_text("utf-8")
    lines = [line for line in code.splitlines(True) if not line.startswith("from __future__")]
    found = practice.region(exercise, file.read_text("utf-8"))
    assert found is not None
    file.write_text(found.before + "\n" + "".join(lines) + found.after, encoding="utf-8")


class Checkout:
    """A copy of the packages and of the published stubs, with a learner's space if asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root
        skip = shutil.ignore_patterns("__pycache__")
        for name in (*PACKAGES, "practice"):
            shutil.copytree(ROOT / name, root / name, ignore=skip)

    def make_work(self) -> Path:
        shutil.copytree(self.root / "practice", self.root / "work" / "practice")
        return self.root / "work" / "practice"

    def command(self, *arguments: str, script: str = "practice/judge.py") -> list[str]:
        return [sys.executable, script, *arguments]

    def run(self, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
        options.setdefault("cwd", self.root)
        script = str(options.pop("script", "practice/judge.py"))
        return subprocess.run(
            self.command(*arguments, script=script),
            capture_output=True, text=True, timeout=120, encoding="utf-8", **options,
        )  # fmt: skip


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "a course, été")
