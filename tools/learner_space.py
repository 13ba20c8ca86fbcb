"""Owns the learner's space: work/ with the learner's own copies of the chapters and exercises.

work/.published/ keeps, for each copy, the version that it was made from: what a later release is
merged against, by `python practice/judge.py --update`. A file of the learner's is never overwritten
here; a copy that is still as published follows the published one.
"""

from __future__ import annotations

import filecmp
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))  # tools/ is run by path

from judge.published import copy_file, entries


def copy_learner_space(root: Path) -> list[str]:
    """Copy what is missing, refresh what is untouched; returns sentences about what was done."""
    created, refreshed, kept = [], [], []
    for entry in entries(root):
        path, copy, record = entry.published, entry.copy, entry.record
        if not copy.exists():
            copy_file(path, record)
            copy_file(path, copy)
            created.append(entry.name)
        elif record.exists() and filecmp.cmp(record, path, shallow=False):
            continue
        elif filecmp.cmp(copy, path, shallow=False):
            copy_file(path, record)  # the learner's copy equals the new version already
        elif record.exists() and filecmp.cmp(copy, record, shallow=False):
            copy_file(path, copy)
            copy_file(path, record)
            refreshed.append(entry.name)
        else:
            kept.append(entry.name)
    lines = []
    if created:
        lines.append(f"work/: {len(created)} files copied")
    if refreshed:
        lines.append(f"work/: brought up to date, as you had not changed them: {_list(refreshed)}")
    if kept:
        lines.append(f"work/: yours are kept, newer ones are published: {_list(kept)}")
        lines.append("work/: python practice/judge.py --update brings the newer ones in")
    return lines


def _list(names: list[str], most: int = 6) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
