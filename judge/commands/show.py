"""Owns what the command line shows without grading: progress, the list of exercises, hints."""

from __future__ import annotations

from collections.abc import Sequence

from judge import practice
from judge.api import Exercise
from judge.commands.grade import ALL_PASSED, show_note
from judge.exercises import EXERCISES, sharing
from judge.progress import EDITED, Progress
from judge.report import SCRIPT, Reporter


def next_exercise(progress: Progress, among: Sequence[Exercise] = EXERCISES) -> Exercise:
    """The first exercise that has not passed as it is now. Raises ValueError if all have.

    Of those that let one class grow, it is the first that never passed: the growing itself
    is what has edited the others.
    """
    todo = [exercise for exercise in among if progress.status(exercise) != "passed"]
    if not todo:
        raise ValueError("every exercise has passed; there is none to go on with")
    grows = [e for e in sharing(todo[0]) if e in todo and progress.status(e) != EDITED]
    return (grows or todo)[0]


def where(exercise: Exercise, progress: Progress) -> str:
    """File and line, as editors and terminals understand them."""
    file = progress.folder.path / exercise.file
    return f"{practice.shown(file)}:{practice.line_of(exercise, file)}"


def list_exercises(progress: Progress, reporter: Reporter) -> int:
    """One line for each exercise."""
    for exercise in EXERCISES:
        kind = f"engine part: {exercise.slot}" if exercise.slot else "graded as a function"
        torch = "torch" if exercise.needs_torch else "no torch"
        reporter.line(
            f"ch{exercise.chapter:02d}  {exercise.id:<26} {progress.status(exercise):<27} "
            f"{exercise.minutes:>3} min  {kind}, {torch}  {where(exercise, progress)}"
        )
    return 0


def overview(progress: Progress, reporter: Reporter) -> int:
    """Progress, the last failure and what is next."""
    reporter.line(f"practice folder: {progress.folder.describe()}")
    statuses = {exercise.id: progress.status(exercise) for exercise in EXERCISES}
    passed = sum(status == "passed" for status in statuses.values())
    reporter.line(f"{passed} of {len(EXERCISES)} exercises passed")
    for exercise in EXERCISES:
        status = statuses[exercise.id]
        label = "PASS" if status == "passed" else "-"
        solution = progress.solution_shown(exercise)
        if solution is not None:
            status += f"; {solution}"
        reporter.labelled(f"  {label:<5}", f"{exercise.id:<26} {exercise.title} ({status})")
    failure = progress.last_failure
    if failure:
        reporter.line()
        stale = any(e.id == failure.get("exercise") and statuses[e.id].endswith("changed since")
                    for e in EXERCISES)  # fmt: skip
        reporter.line(f"last failure: {failure.get('exercise')} / {failure.get('check')}"
                      f"{' (the code was changed since)' if stale else ''}")  # fmt: skip
        for line in failure.get("lines", []):
            reporter.line(f"  {line}")
        reporter.line(f"  repeat: {SCRIPT} {failure.get('exercise')} --only {failure.get('check')} "
                      f"--seed {failure.get('seed')}")  # fmt: skip
    if passed < len(EXERCISES):
        exercise = next_exercise(progress)
        reporter.line()
        reporter.line(f"next: {exercise.id}, about {exercise.minutes} minutes, in "
                      f"{where(exercise, progress)}")  # fmt: skip
        reporter.line(f"  grade it: {SCRIPT} {exercise.id}")
    else:
        reporter.line()
        reporter.line(ALL_PASSED)
    show_note(progress)
    return 0


def hint(exercise: Exercise, progress: Progress, reporter: Reporter) -> int:
    """The next hint; the third one again once all were shown."""
    details = exercise.details()
    check = progress.hints_of(exercise)
    about = f", on the check {check}" if check else ""
    hints = details.hints_for[check] if check else details.hints
    number = progress.next_hint(exercise, check)
    reporter.line(f"{exercise.id}{about}, hint {number + 1} of 3", "bold")
    for line in hints[number].splitlines():
        reporter.line(f"  {line}")
    if number == 2:
        reporter.line(f"this was the last hint; the reference's code: {SCRIPT} {exercise.id} "
                      "--solution")  # fmt: skip
    progress.save()
    show_note(progress)
    return 0
