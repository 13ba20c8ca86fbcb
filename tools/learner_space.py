"""Owns the learner's space: work/ with the learner's own copies of the chapters and exercises.

work/.published/ keeps, for each copy, the version that it was made from: what a later release is
merged against. A file of the learner's is never overwritten; a copy that is still as published
follows the published one.
"""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

SOURCES = ("chapters", "practice")
RECORD = ".published"


def copy_learner_space(root: Path) -> list[str]:
    """Copy what is missing, refresh what is untouched; returns sentences about what was done."""
    created, refreshed, kept = [], [], []
    for path in published_files(root):
        name = path.relative_to(root)
        copy, record = root / "work" / name, root / "work" / RECORD / name
        if not copy.exists():
            _copy(path, record)
            _copy(path, copy)
            created.append(str(name))
        elif record.exists() and filecmp.cmp(record, path, shallow=False):
            continue
        elif filecmp.cmp(copy, path, shallow=False):
            _copy(path, record)  # the learner's copy equals the new version already
        elif record.exists() and filecmp.cmp(copy, record, shallow=False):
            _copy(path, copy)
            _copy(path, record)
            refreshed.append(str(name))
        else:
            kept.append(str(name))
    lines = []
    if created:
        lines.append(f"work/: {len(created)} files copied")
    if refreshed:
        lines.append(f"work/: brought up to date, as you had not changed them: {_list(refreshed)}")
    if kept:
        lines.append(f"work/: yours are kept, newer ones are published: {_list(kept)}")
    return lines


def published_files(root: Path) -> Iterator[Path]:
    """The notebooks and the exercise files as published, sorted; no caches, no hidden files."""
    for source in SOURCES:
        for folder, folders, names in os.walk(root / source):
            folders[:] = sorted(f for f in folders if not f.startswith((".", "__")))
            for name in sorted(names):
                if not name.startswith(".") and not name.endswith(".pyc"):
                    yield Path(folder) / name


def _copy(source: Path, target: Path) -> None:
    """Copy by way of a temporary file, so that an interruption leaves no half file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    shutil.copy2(source, partial)
    partial.replace(target)


def _list(names: list[str], most: int = 6) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
