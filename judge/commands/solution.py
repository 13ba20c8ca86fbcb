"""Owns `--solution`: the reference's code for an exercise, and the record that it was shown.

Nobody is kept from it. Only where hints are unread and the exercise has neither passed nor been
shown before does it take a `--yes`, so that a mistyped command gives nothing away.
"""

from __future__ import annotations

from judge import practice
from judge.api import Exercise
from judge.commands.grade import show_note
from judge.exercises import sharing
from judge.progress import Progress
from judge.report import SCRIPT, Reporter
from judge.source import reference_source


def solution(exercise: Exercise, progress: Progress, reporter: Reporter, *, sure: bool) -> int:
    """Show the reference, or say that hints are left; returns 0, or 3 where it was not shown."""
    left = 3 - min(progress.hints_shown(exercise, progress.hints_of(exercise)), 3)
    known = progress.solution_shown(exercise) is not None
    done = progress.status(exercise) in ("passed", "edited since it passed")
    if left and not sure and not known and not done:
        reporter.line(f"{left} of 3 hints of {exercise.id} are unread; a hint gives less away")
        reporter.line(f"  the next hint: {SCRIPT} {exercise.id} --hint")
        reporter.line(f"  the solution:  {SCRIPT} {exercise.id} --solution --yes")
        return 3
    source = reference_source(exercise.reference, exercise.symbols)
    same = sharing(exercise)
    for one in same:
        progress.show_solution(one)
    progress.save()
    reporter.line(f"{exercise.id}, the reference in {practice.shown(source.file)}", "bold")
    if len(same) > 1:
        reporter.line(f"(the finished code of {', '.join(one.id for one in same)})")
    reporter.code("\n\n\n".join(source.pieces))
    reporter.line()
    reporter.line(f"progress says: {progress.solution_shown(exercise)}")
    if not done:
        reporter.line("you learn most by closing this and writing it in your own words")
    show_note(progress)
    return 0
