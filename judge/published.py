"""Owns which files are published, and the record of the version that each learner's copy came from.

Standard library only: setting the course up needs it before anything is installed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCES = ("chapters", "practice")
RECORD = ".published"
OFFERED = ".offered"  # versions that lie beside a learner's file and wait to be taken over


@dataclass(frozen=True)
class Entry:
    """One published file: as published, the learner's copy, and the version that it came from."""

    name: str
    published: Path
    copy: Path
    record: Path
    offered: Path

    @property
    def beside(self) -> Path:
        """Where a new version is laid beside a copy that can't follow it."""
        if self.copy.suffix == ".ipynb":  # so that JupyterLab opens it
            return self.copy.with_name(f"{self.copy.stem}.new.ipynb")
        return self.copy.with_name(f"{self.copy.name}.new")


def entries(root: Path) -> Iterator[Entry]:
    """The notebooks and the exercise files as published, sorted; no caches, no hidden files."""
    for source in SOURCES:
        for folder, folders, names in os.walk(root / source):
            folders[:] = sorted(f for f in folders if not f.startswith((".", "__")))
            for name in sorted(names):
                if not name.startswith(".") and not name.endswith(".pyc"):
                    yield entry(root, Path(folder) / name)


def entry(root: Path, published: Path) -> Entry:
    name, work = published.relative_to(root), root / "work"
    return Entry(
        str(name), published, work / name, work / RECORD / name, work / RECORD / OFFERED / name
    )


def copy_file(source: Path, target: Path) -> None:
    """Copy by way of a temporary file, so that an interruption leaves no half file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    shutil.copy2(source, partial)
    partial.replace(target)
