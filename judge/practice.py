"""Owns the learner's files: which folder is in use, where an exercise stands, what its code is."""

from __future__ import annotations

import ast
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from judge.api import Exercise
from judge.sandbox import ROOT

BEGIN, END = "# --- {id}: edit from here ---", "# --- end of {id} ---"


@dataclass(frozen=True)
class Folder:
    """The practice folder in use; `own` if it holds the learner's copies."""

    path: Path
    own: bool

    @property
    def records(self) -> Path:
        """Where progress and predictions are kept: beside the practice folder."""
        return self.path.parent

    def describe(self) -> str:
        kind = (
            "your copies" if self.own else "the stubs as published; make lab makes your own copies"
        )
        return f"{shown(self.path)} ({kind})"


def folder(root: Path = ROOT) -> Folder:
    """`work/practice` where it exists, else `practice`. Raises FileNotFoundError without either."""
    for path, own in ((root / "work" / "practice", True), (root / "practice", False)):
        if path.is_dir():
            return Folder(path, own)
    raise FileNotFoundError(
        f"there is no practice folder in {root}; run the judge from a checkout of the course"
    )


def shown(path: Path) -> str:
    """A path as a reader here would type it."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith(os.pardir) else relative


def line_of(exercise: Exercise, file: Path) -> int:
    """The line of the first symbol of an exercise, 1 if it can't be found."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):  # the grading itself reports what is wrong with it
        return 1
    for node in tree.body:
        named = isinstance(node, (ast.FunctionDef, ast.ClassDef))
        if named and node.name in exercise.symbols:  # type: ignore[attr-defined]
            return node.lineno
    return 1


@dataclass(frozen=True)
class Region:
    """A file cut into what stands before an exercise's own lines, those lines, and what follows.

    The marks belong to `before` and `after`.
    """

    before: str
    own: str
    after: str


def region(exercise: Exercise, text: str) -> Region | None:
    """The region of an exercise in a file's text; None unless both marks stand there, in order."""
    begin, end = BEGIN.format(id=exercise.mark), END.format(id=exercise.mark)
    before, found, rest = text.partition(begin)
    own, closed, after = rest.partition(end)
    if not found or not closed:
        return None
    return Region(before + begin, own, end + after)


def code_hash(exercise: Exercise, file: Path) -> str:
    """A digest of the exercise's own region of a file; of the whole file if the marks are gone."""
    try:
        text = file.read_text("utf-8", "replace")
    except OSError:
        return ""
    found = region(exercise, text)
    own = text if found is None else found.own
    return hashlib.sha256(own.encode("utf-8")).hexdigest()[:16]
