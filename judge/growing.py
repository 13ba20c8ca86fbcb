"""Owns what to grade where several exercises let one class grow: one save edits them all."""

from __future__ import annotations

from collections.abc import Sequence

from judge.api import Exercise
from judge.exercises import sharing
from judge.progress import EDITED, Progress


def to_repeat(progress: Progress, graded: Sequence[Exercise]) -> list[Exercise]:
    """Exercises beside those just graded that passed with an earlier state of the same class."""
    beside = {other.id: other for exercise in graded for other in sharing(exercise)}
    return [e for e in beside.values() if e not in graded and progress.status(e) == EDITED]


def within_reach(progress: Progress, saved: Sequence[Exercise]) -> list[Exercise]:
    """Without those that come later in the growth of a class than the next one to pass."""
    found = []
    for exercise in saved:
        same = [e for e in sharing(exercise) if e in saved]
        fresh = [e for e in same if progress.status(e) not in ("passed", EDITED)]
        if exercise not in fresh[1:]:
            found.append(exercise)
    return found
