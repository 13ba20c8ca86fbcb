"""Owns `--reset`: an exercise starts again from its published stub; nothing is lost."""

from __future__ import annotations

from pathlib import Path

from judge import practice
from judge.api import Exercise
from judge.backups import Backups, replace
from judge.exercises import sharing
from judge.report import SCRIPT, Reporter


def reset(exercise: Exercise, folder: practice.Folder, reporter: Reporter, published: Path) -> int:
    """Put the stub's lines between the marks of an exercise; the rest of the file stays.

    The file as it was is kept in work/backups. Raises ValueError, having changed nothing, where
    there are no copies of the learner's own or the marks can't be found.
    """
    if not folder.own:
        raise ValueError(
            f"{practice.shown(folder.path)} holds the stubs as published, and --reset changes only "
            "copies of your own; make lab (or python tools/setup.py space) makes them in work/"
        )
    file = folder.path / exercise.file
    if not file.is_file():
        raise FileNotFoundError(
            f"{practice.shown(file)} is missing; {SCRIPT} --update puts the published one there"
        )
    old = file.read_bytes()
    new = with_stub(exercise, old, (published / exercise.file).read_bytes(), practice.shown(file))
    if new == old:
        reporter.line(f"{exercise.id} is as published already; nothing was changed")
        return 0
    copy = Backups(folder.records).keep(file, old)
    replace(file, old, new)
    reporter.line(f"{exercise.id} is back at its stub, in {practice.shown(file)}")
    others = [other.id for other in sharing(exercise) if other is not exercise]
    if others:
        reporter.line(f"  the same code serves {', '.join(others)}: they start again too")
    reporter.line(f"  the whole file as it was: {practice.shown(copy)}")
    reporter.line(f"  nothing outside the marks of {exercise.mark} was changed")
    reporter.line("  if the file is open in an editor, reload it there before you type")
    return 0


def with_stub(exercise: Exercise, old: bytes, stub: bytes, name: str) -> bytes:
    """A file in which the region of one exercise is the stub's. Raises ValueError."""
    try:
        text = old.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is no UTF-8 text ({error}), so it was left alone") from error
    begin, end = practice.BEGIN.format(id=exercise.mark), practice.END.format(id=exercise.mark)
    counts = text.count(begin), text.count(end)
    found = practice.region(exercise, text)
    if counts != (1, 1) or found is None:
        raise ValueError(
            f"in {name} the lines {begin!r} and {end!r} must each stand once, in this order; they "
            f"stand there {counts[0]} and {counts[1]} times. Nothing was changed. Put the marks "
            f"back, or take the stub from practice/{exercise.file} by hand"
        )
    published = practice.region(exercise, stub.decode("utf-8"))
    assert published is not None, f"the published {exercise.file} lacks the marks"
    own = published.own
    if "\r\n" in text:  # the file keeps its own line ends
        own = own.replace("\n", "\r\n")
    return (found.before + own + found.after).encode("utf-8")
