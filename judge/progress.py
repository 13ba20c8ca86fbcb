"""Owns the record of what passed: `progress.json`, one entry per exercise."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from judge.api import Exercise, ExerciseResult
from judge.practice import Folder, code_hash

VERSION = 1


def write_atomically(path: Path, data: Any) -> None:
    """Replace a JSON file in one move: an interrupted write leaves the old one. Raises OSError."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=1, sort_keys=True)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


class Progress:
    """What is known about each exercise. A file that can't be read is kept aside."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.path = folder.records / "progress.json"
        self.note: str | None = None
        self.entries: dict[str, dict[str, Any]] = {}
        self.last_failure: dict[str, Any] | None = None
        self._load()

    def _load(self) -> None:
        if not self.path.exists():
            return
        try:
            data = json.loads(self.path.read_text("utf-8"))
            entries = dict(data["exercises"])
            assert all(isinstance(entry, dict) for entry in entries.values())
        except (OSError, ValueError, KeyError, TypeError, AssertionError) as error:
            aside = self.path.with_suffix(".unreadable.json")
            self.note = f"{self.path.name} can't be read ({error}); it is kept as {aside.name}"
            try:
                os.replace(self.path, aside)
            except OSError as problem:
                self.note = f"{self.path.name} can't be read and can't be moved ({problem})"
            return
        self.entries, self.last_failure = entries, data.get("last_failure")

    def entry(self, exercise: Exercise) -> dict[str, Any]:
        return self.entries.get(exercise.id, {})

    def status(self, exercise: Exercise) -> str:
        """ "passed" only for the code as it is now; "edited" if it was changed since it passed."""
        entry = self.entry(exercise)
        if not entry.get("status"):
            return "not tried"
        if entry["status"] == "passed" and entry.get("hash") != self._hash(exercise):
            return "edited since it passed"
        return str(entry["status"])

    def earlier(self, exercise: Exercise) -> tuple[str, ...]:
        """Checks on SmolLM2 that passed with the code as it is now."""
        entry = self.entry(exercise)
        same = entry.get("hash") == self._hash(exercise)
        return tuple(entry.get("slow_passed", ())) if same else ()

    def record(self, result: ExerciseResult) -> None:
        """Take a whole run of an exercise in (not one of a single check)."""
        exercise = result.exercise
        slow = [r.check.name for r in result.results
                if "smollm2" in r.check.needs and r.status == "passed"]  # fmt: skip
        entry = self.entries.setdefault(exercise.id, {})
        code = self._hash(exercise)
        if entry.get("hash") == code:
            slow = sorted({*slow, *entry.get("slow_passed", ())})
        entry |= {"status": result.status, "hash": code, "slow_passed": slow}
        failure = result.first_failure
        if failure is not None and result.status != "passed":
            self.last_failure = {
                "exercise": exercise.id,
                "check": failure.check.name,
                "seed": result.seed,
                "lines": failure.lines[:4],
            }
        elif self.last_failure and self.last_failure.get("exercise") == exercise.id:
            self.last_failure = None

    def next_hint(self, exercise: Exercise) -> int:
        """Which hint is next, 0 to 2; remembers that it was shown."""
        entry = self.entries.setdefault(exercise.id, {})
        number = min(int(entry.get("hints", 0)), 2)
        entry["hints"] = number + 1
        return number

    def save(self) -> None:
        """Write it down; a folder that can't be written is worth a note, not a failure."""
        data = {
            "version": VERSION,
            "exercises": self.entries,
            "last_failure": self.last_failure,
        }
        try:
            write_atomically(self.path, data)
        except OSError as error:
            self.note = f"progress was not saved: {error}"

    def _hash(self, exercise: Exercise) -> str:
        return code_hash(exercise, self.folder.path / exercise.file)
