"""Owns noticing that a practice file was saved, and which exercises that concerns. Only polls.

Known files only: those of the table of exercises, and what they import from their own folder.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from judge import practice
from judge.api import Exercise

Stamp = tuple[int, int, int, int]
IMPORT = re.compile(r"(?:^|[;:])[ \t]*(?:from[ \t]+(\w+)|import[ \t]+([^\n;#]+))", re.MULTILINE)


def stamp(path: Path) -> Stamp | None:
    """What changes when a file is saved, copied over or replaced; None while it is absent."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


@dataclass
class Snapshot:
    """The practice files as they were at one moment: stamps, and a digest for each exercise.

    The digest covers all that the exercise may depend on: its region, what stands outside of all
    regions of its file, and whole files of the folder that these import.
    """

    folder: Path
    stamps: dict[Path, Stamp | None] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)

    @property
    def missing(self) -> list[Path]:
        return [path for path, found in self.stamps.items() if found is None]

    def moved(self) -> bool:
        """Whether a file was saved, replaced or removed since; cheap enough to ask often."""
        return any(stamp(path) != found for path, found in self.stamps.items())


def snapshot(folder: Path, exercises: Iterable[Exercise]) -> Snapshot:
    """Look at all files that matter to these exercises. A file may be absent or no Python."""
    taken = Snapshot(folder)
    texts: dict[Path, str | None] = {}
    by_file: dict[Path, list[Exercise]] = {}
    for exercise in exercises:
        by_file.setdefault(folder / exercise.file, []).append(exercise)
    for path, own in by_file.items():
        text = _text(path, taken, texts)
        if text is None:
            continue
        outside = _outside(text)
        for exercise in own:
            region = practice.region(exercise, text)
            code = text if region is None else outside + region.own
            taken.digests[exercise.id] = _digest(code, path, taken, texts)
    return taken


def changed(before: Snapshot, after: Snapshot, exercises: Iterable[Exercise]) -> list[Exercise]:
    """The exercises whose code is there and is other than before."""
    return [
        exercise
        for exercise in exercises
        if after.digests.get(exercise.id) not in (None, before.digests.get(exercise.id))
    ]


def _outside(text: str) -> str:
    """A file without the regions of its exercises: imports, helpers, notes."""
    begin, end = (re.escape(mark).replace(r"\{id\}", r"(\S+)") for mark in
                  (practice.BEGIN, practice.END))  # fmt: skip
    return re.sub(f"{begin}.*?{end.replace('(', '(?:')}", "", text, flags=re.DOTALL)


def _digest(code: str, path: Path, taken: Snapshot, texts: dict[Path, str | None]) -> str:
    """Of some code of a file and of all files beside it that it imports, directly or not."""
    seen, todo, pieces = {path}, [code], [code]
    while todo:
        for name in _imported(todo.pop()):
            other = taken.folder / f"{name}.py"
            if other in seen or not (other in taken.stamps or other.is_file()):
                continue
            seen.add(other)
            text = _text(other, taken, texts)
            if text is not None:
                todo.append(text)
                pieces.append(f"{name}\0{text}")
    return hashlib.sha256("\0".join(pieces).encode("utf-8", "replace")).hexdigest()


def _imported(code: str) -> list[str]:
    """Modules that code may import, found without parsing: it may be half written."""
    names = {
        name for pair in IMPORT.findall(code) for text in pair for name in re.findall(r"\w+", text)
    }
    return sorted(names)


def _text(path: Path, taken: Snapshot, texts: dict[Path, str | None]) -> str | None:
    if path not in texts:
        taken.stamps[path] = stamp(path)  # before reading: a save in between is seen the next time
        try:
            texts[path] = path.read_text("utf-8", "replace")
        except OSError:
            texts[path] = None
            taken.stamps[path] = None
    return texts[path]
