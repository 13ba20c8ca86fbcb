"""Owns `--update`: a new release comes into the learner's space, and no line of the learner's goes.

A copy that is still as published follows. A changed one is merged with git, three ways, against the
version that it was made from. Where both changed a place the learner's lines stay, and the new
version lies beside the file as NAME.new until the learner deletes it: then it counts as taken over.
Changed notebooks are not merged at all. Progress is not touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from judge import practice
from judge.backups import Backups, NotChanged, replace
from judge.exercises import EXERCISES
from judge.merge import have_git, merge
from judge.published import OFFERED, RECORD, Entry, copy_file, entries
from judge.report import SCRIPT, Reporter

HEADS = {
    "same": "up to date already",
    "new": "new",
    "followed": "brought up to date, as you had not changed them",
    "merged": "merged with your changes",
    "settled": "settled: you deleted the .new file beside it",
}


@dataclass(frozen=True)
class Outcome:
    """What became of one file: `kind` is one of HEADS, or "left" for the learner to do."""

    kind: str
    name: str
    words: str = ""


def update(root: Path, folder: practice.Folder, reporter: Reporter) -> int:
    """Bring work/ up to what is published; returns 1 if something is left to do, else 0.

    Raises ValueError without a learner's space.
    """
    if not folder.own:
        raise ValueError(
            "there is no work/practice to bring up to date; make lab (or python tools/setup.py "
            "space) makes your copies, and git pull brings in what is published"
        )
    backups = Backups(folder.records)
    found, changed = [], []
    for entry in entries(root):
        before = _read(entry.record)
        try:
            found.append(bring(entry, backups))
        except NotChanged as error:
            found.append(Outcome("left", entry.name, str(error)))
        changed += _changed_exercises(entry, before)
    _report(found, changed, _gone(root), backups, reporter)
    return 1 if any(outcome.kind == "left" for outcome in found) else 0


def bring(entry: Entry, backups: Backups) -> Outcome:
    """Bring one file up to date. Raises NotChanged."""
    new, mine, base = entry.published.read_bytes(), _read(entry.copy), _read(entry.record)
    if mine is None:
        replace(entry.copy, None, new)
        _settle(entry)
        return Outcome("new", entry.name)
    if base == new:
        return Outcome("same", entry.name)
    if mine == new:
        _settle(entry)
        return Outcome("same", entry.name)
    if mine == base:
        replace(entry.copy, mine, new)
        _settle(entry)
        return Outcome("followed", entry.name)
    if _read(entry.offered) == new and not entry.beside.exists():
        _settle(entry)
        return Outcome("settled", entry.name)
    return _join(entry, base, mine, new, backups)


def _join(entry: Entry, base: bytes | None, mine: bytes, new: bytes, backups: Backups) -> Outcome:
    """Merge a file that both sides changed, or lay the new version beside it."""
    if entry.copy.suffix == ".ipynb":
        return _offer(
            entry, new, "you changed this notebook, and notebooks are not merged", backups
        )
    if base is None:
        why = "it was there before its published version was recorded, so it can't be merged"
        return _offer(entry, new, why, backups)
    if not have_git():
        why = "git is not installed here; install it and repeat this, or merge by hand"
        return _offer(entry, new, why, backups)
    try:
        merged = merge(base, mine, new)
    except RuntimeError as error:
        return _offer(entry, new, str(error), backups)
    if merged is None:
        return _offer(entry, new, "it can't be merged without harm to your lines", backups)
    words = ""
    if merged.text != mine:
        copy = backups.keep(entry.copy, mine)
        replace(entry.copy, mine, merged.text)
        words = f"yours as it was: {practice.shown(copy)}"
    if not merged.conflicts:
        _settle(entry)
        return Outcome("merged", entry.name, words)
    places = "1 place was" if merged.conflicts == 1 else f"{merged.conflicts} places were"
    why = f"{places} changed by you and by the release: yours stands there, the rest is merged"
    return _offer(entry, new, "; ".join(filter(None, (why, words))), backups)


def _offer(entry: Entry, new: bytes, why: str, backups: Backups) -> Outcome:
    """Lay a new version beside a learner's file, which stays the base of a later merge."""
    lying = _read(entry.beside)
    if lying not in (None, new, _read(entry.offered)):  # the learner wrote into it
        backups.keep(entry.beside, lying or b"")
    if lying != new:
        replace(entry.beside, lying, new)
    copy_file(entry.published, entry.offered)
    return Outcome("left", entry.name, f"{why}; the new version: {practice.shown(entry.beside)}")


def _settle(entry: Entry) -> None:
    """From now on the published version is the base; an untouched offer is taken away."""
    offered = _read(entry.offered)
    if offered is not None and _read(entry.beside) == offered:
        entry.beside.unlink()
    entry.offered.unlink(missing_ok=True)
    copy_file(entry.published, entry.record)


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _changed_exercises(entry: Entry, before: bytes | None) -> list[str]:
    """The exercises of a file whose stub is another than in the version recorded so far."""
    texts = [(data or b"").decode("utf-8", "replace") for data in (before, _read(entry.published))]
    changed = []
    for exercise in EXERCISES:
        if entry.name == f"practice/{exercise.file}":
            old, new = (practice.region(exercise, text) for text in texts)
            if new is not None and (old is None or old.own != new.own):
                changed.append(exercise.id)
    return changed


def _gone(root: Path) -> list[str]:
    """Files that are published no more; the learner's copies stay."""
    record = root / "work" / RECORD
    known = {entry.name for entry in entries(root)}
    paths = [path.relative_to(record) for path in record.rglob("*") if path.is_file()]
    names = {str(path) for path in paths if path.parts[0] != OFFERED}
    return sorted(name for name in names - known if (root / "work" / name).exists())


def _report(
    found: list[Outcome], changed: list[str], gone: list[str], backups: Backups, reporter: Reporter
) -> None:
    for kind, head in HEADS.items():
        these = [outcome for outcome in found if outcome.kind == kind]
        if kind == "same" and these:
            reporter.line(f"{head}: {len(these)} files")
        elif these:
            reporter.line(f"{head}:")
        for outcome in these if kind != "same" else ():
            reporter.line(f"  {outcome.name}{f' ({outcome.words})' if outcome.words else ''}")
    if gone:
        reporter.line(f"published no more, yours stay: {', '.join(gone)}")
    if changed:
        reporter.line(f"stubs that are new or changed: {', '.join(changed)}")
        reporter.line(f"  grade them: {SCRIPT} EXERCISE")
    if backups.folder is not None:
        reporter.line(f"your files as they were: {practice.shown(backups.folder)}")
        reporter.line("  if such a file is open in an editor, reload it there before you type")
    left = [outcome for outcome in found if outcome.kind == "left"]
    if left:
        reporter.line()
        reporter.line(f"left for you: {len(left)} files, which hold all your lines", "bold")
        for outcome in left:
            reporter.line(f"  {outcome.name}: {outcome.words}")
        reporter.line("  take over what you want, then delete the new version beside the file:")
        reporter.line("  the next --update counts the file as up to date then")
    else:
        reporter.line("work/ is up to date")
