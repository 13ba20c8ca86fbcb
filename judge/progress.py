"""Owns the record of what passed: `progress.json`, one entry per exercise."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judge.api import Exercise, ExerciseResult
from judge.practice import Folder, code_hash

VERSION = 1
EDITED = "edited since it passed"


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


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other judges waiting that want to save into the same folder. Raises OSError."""
    import fcntl

    handle = os.open(folder, os.O_RDONLY)  # the folder itself: a lock file would only lie about
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _hints(check: str | None) -> str:
    """The name under which it is kept how many hints were shown."""
    return "hints" if check is None else f"hints for {check}"


class Progress:
    """What is known about each exercise. A file that can't be read is kept aside.

    Several judges may run at once (one that watches, one that is asked for a hint): saving changes
    only what was learned here, in the file as it is by then.
    """

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.path = folder.records / "progress.json"
        self.note: str | None = None
        self.entries: dict[str, dict[str, Any]] = {}
        self.last_failure: dict[str, Any] | None = None
        self._learned: dict[str, dict[str, Any]] = {}
        self._failure_changed = False
        self._load()

    def _load(self) -> None:
        if not self.path.exists():
            return
        try:
            self.entries, self.last_failure = self._read()
        except (OSError, ValueError, KeyError, TypeError, AssertionError) as error:
            aside = self.path.with_suffix(".unreadable.json")
            self.note = f"{self.path.name} can't be read ({error}); it is kept as {aside.name}"
            try:
                os.replace(self.path, aside)
            except OSError as problem:
                self.note = f"{self.path.name} can't be read and can't be moved ({problem})"

    def _read(self) -> tuple[dict[str, dict[str, Any]], dict[str, Any] | None]:
        data = json.loads(self.path.read_text("utf-8"))
        entries = dict(data["exercises"])
        assert all(isinstance(entry, dict) for entry in entries.values())
        return entries, data.get("last_failure")

    def _learn(self, exercise: Exercise, **facts: Any) -> None:
        self.entries.setdefault(exercise.id, {}).update(facts)
        self._learned.setdefault(exercise.id, {}).update(facts)

    def entry(self, exercise: Exercise) -> dict[str, Any]:
        return self.entries.get(exercise.id, {})

    def status(self, exercise: Exercise) -> str:
        """ "passed" only for the code as it is now; of other code the status, and that it is."""
        entry = self.entry(exercise)
        if not entry.get("status"):
            return "not tried"
        if entry.get("hash") == self.code(exercise):
            return str(entry["status"])
        passed = entry["status"] == "passed"
        return EDITED if passed else f"{entry['status']}, changed since"

    def earlier(self, exercise: Exercise) -> tuple[str, ...]:
        """Checks on SmolLM2 that passed with the code as it is now."""
        entry = self.entry(exercise)
        same = entry.get("hash") == self.code(exercise)
        return tuple(entry.get("slow_passed", ())) if same else ()

    def record(self, result: ExerciseResult, graded: str, *, smollm2: bool = True) -> None:
        """Take a whole run of an exercise in (not one of a single check).

        `smollm2` is False if another model stood in its place: that says nothing about SmolLM2.
        `graded` is what `code` said before the run. A file that was saved during the run holds
        code that was never graded, so nothing is recorded then.
        """
        exercise = result.exercise
        if self.code(exercise) != graded:
            self.note = f"{exercise.file} was saved during the run, which is not recorded"
            return
        slow = [r.check.name for r in result.results
                if smollm2 and "smollm2" in r.check.needs and r.status == "passed"]  # fmt: skip
        entry = self.entry(exercise)
        if entry.get("hash") == graded:
            slow = sorted({*slow, *entry.get("slow_passed", ())})
        self._learn(exercise, status=result.status, hash=graded, slow_passed=slow)
        failure = result.first_failure
        self._failure_changed = True
        if failure is not None and result.status != "passed":
            self.last_failure = {
                "exercise": exercise.id,
                "check": failure.check.name,
                "seed": result.seed,
                "lines": failure.lines[:4],
            }
        elif self.last_failure and self.last_failure.get("exercise") == exercise.id:
            self.last_failure = None

    def next_hint(self, exercise: Exercise, check: str | None = None) -> int:
        """Which hint is next, 0 to 2; remembers that it was shown. `check` has its own three."""
        number = min(self.hints_shown(exercise, check), 2)
        self._learn(exercise, **{_hints(check): number + 1})
        return number

    def hints_shown(self, exercise: Exercise, check: str | None = None) -> int:
        """How many of the three hints, of the exercise or of one of its checks, were shown."""
        return int(self.entry(exercise).get(_hints(check), 0))

    def hints_of(self, exercise: Exercise) -> str | None:
        """The check whose own hints fit: the last that failed, if it has some; else None."""
        failure = self.last_failure or {}
        check = failure.get("check") if failure.get("exercise") == exercise.id else None
        return check if check in exercise.details().hints_for else None

    def solution_shown(self, exercise: Exercise) -> str | None:
        """ "solution shown on DATE", with ", after it passed" where that is so; else None."""
        entry = self.entry(exercise)
        if "solution_shown" not in entry:
            return None
        after = ", after it passed" if entry.get("solution_after_pass") else ""
        return f"solution shown on {entry['solution_shown']}{after}"

    def show_solution(self, exercise: Exercise) -> None:
        """Remember the day on which the reference was first shown."""
        if self.solution_shown(exercise) is None:
            passed = self.entry(exercise).get("status") == "passed"
            today = time.strftime("%Y-%m-%d")
            self._learn(exercise, solution_shown=today, solution_after_pass=passed)

    def save(self) -> None:
        """Write it down; a folder that can't be written is worth a note, not a failure."""
        try:
            with _alone(self.path.parent):
                self._take_in_others()
                data = {
                    "version": VERSION,
                    "exercises": self.entries,
                    "last_failure": self.last_failure,
                }
                write_atomically(self.path, data)
        except OSError as error:
            self.note = f"progress was not saved: {error}"

    def _take_in_others(self) -> None:
        """What other judges saved since this one read the file; what was learned here wins."""
        try:
            entries, failure = self._read()
        except (OSError, ValueError, KeyError, TypeError, AssertionError):
            return  # absent, or damaged after it was read: what is known here is the best there is
        for name, facts in self._learned.items():
            entries.setdefault(name, {}).update(facts)
        self.entries = entries
        if not self._failure_changed:
            self.last_failure = failure

    def code(self, exercise: Exercise) -> str:
        """A digest of the exercise's code as it stands in its file now."""
        return code_hash(exercise, self.folder.path / exercise.file)
