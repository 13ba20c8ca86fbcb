"""Owns grading from the command line: verdicts on the screen, their record, the exit code."""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from typing import Any

from judge import practice
from judge.api import FAILED, Exercise, ExerciseResult
from judge.exercises import EXERCISES, find
from judge.growing import to_repeat
from judge.models import NAMES, chosen
from judge.progress import Progress
from judge.report import SCRIPT, Reporter, as_data
from judge.runner import Grader, Options, learner_source
from judge.workers import Workers

ALL_PASSED = (
    f"all {len(EXERCISES)} exercises passed. Let your own engine answer: {SCRIPT} --mine\n"
    f"New chapters come with new releases: git pull, then {SCRIPT} --update"
)


def grade(
    exercises: list[Exercise], args: argparse.Namespace, progress: Progress, reporter: Reporter
) -> int:
    """Grade exercises one after another and record what came out; returns the exit code."""
    seed = args.seed if args.seed is not None else new_seed()
    if not args.json:
        reporter.line(f"grading {progress.folder.describe()}")
    results = []
    with Workers() as workers:
        for exercise in exercises:
            results.append(grade_and_record(exercise, seed, args, progress, reporter, workers))
        again = to_repeat(progress, exercises) if args.only is None else []
        if again and not args.json:
            reporter.line()
            reporter.line("what passed with an earlier state of this code, once more:")
        for exercise in again:
            results.append(grade_and_record(exercise, seed, args, progress, reporter, workers))
    if args.json:
        print(json.dumps([as_data(result) for result in results], indent=1))
    elif len(results) > 1:
        reporter.line()
        passed = sum(result.status == "passed" for result in results)
        reporter.line(f"{passed} of {len(results)} exercises passed")
    if not args.json and exit_code(results) == 0 and all_passed(progress):
        reporter.line()
        reporter.line(ALL_PASSED)
    show_note(progress)
    return exit_code(results)


def grade_and_record(
    exercise: Exercise,
    seed: int,
    args: argparse.Namespace,
    progress: Progress,
    reporter: Reporter,
    workers: Workers,
) -> ExerciseResult:
    """Grade one exercise, show it, and remember a whole run of it."""
    code = progress.code(exercise)
    result = grade_one(exercise, seed, args, progress, reporter, workers)
    if args.only is None:
        progress.record(result, code, smollm2=args.model in (None, *NAMES))
        progress.save()
    return result


def grade_one(
    exercise: Exercise,
    seed: int,
    args: argparse.Namespace,
    progress: Progress,
    reporter: Reporter,
    workers: Workers,
) -> ExerciseResult:
    """Grade one exercise and show it. Raises FileNotFoundError if its file is not there."""
    file = progress.folder.path / exercise.file
    if not file.is_file():
        raise FileNotFoundError(f"{practice.shown(file)} is missing; it holds {exercise.id}")
    line = practice.line_of(exercise, file)
    options = make_options(
        seed, args, earlier=() if args.model not in (None, "tiny") else progress.earlier(exercise),
        on_check=None if args.json else reporter.check,
    )  # fmt: skip
    if not args.json:
        reporter.line()
        reporter.line(f"{exercise.id}  {exercise.title}  {practice.shown(file)}:{line}", "bold")
    result = Grader(exercise, learner_source(exercise, file), options, workers).run()
    result.line = line
    if not args.json:
        reporter.failure(result, progress.hints_shown(exercise, own_hints(result)))
        reporter.summary(result)
    return result


def own_hints(result: ExerciseResult) -> str | None:
    """The check that failed first, if it has hints of its own."""
    failed = result.first_failure
    known = result.exercise.details().hints_for
    return failed.check.name if failed is not None and failed.check.name in known else None


def all_passed(progress: Progress) -> bool:
    """Whether nothing is left to do."""
    return all(progress.status(exercise) == "passed" for exercise in EXERCISES)


def make_options(seed: int, args: argparse.Namespace, **extra: Any) -> Options:
    """Options from the arguments: without --model both are used, SmolLM2 once per version."""
    from judge.doctor import missing_models

    models, real = chosen(args.model)
    return Options(
        seed=seed, only=args.only, device=args.device, models=models, real=real,
        missing=missing_models(real), **extra,
    )  # fmt: skip


def start_from(name: str) -> list[Exercise]:
    """The exercises from an exercise, topic or chapter on. Raises ValueError for no such name."""
    return list(EXERCISES[EXERCISES.index(find(name)[0]) :])


def new_seed() -> int:
    return random.SystemRandom().randrange(1000, 10_000)


def seed_of_failure(progress: Progress, exercise: Exercise) -> int:
    """The seed of the last failure of this exercise, so that --debug meets it again."""
    failure = progress.last_failure or {}
    seed = failure.get("seed") if failure.get("exercise") == exercise.id else None
    return seed if isinstance(seed, int) else new_seed()


def exit_code(results: Sequence[ExerciseResult]) -> int:
    """0, 1, 3 or 4, as the docstring of `judge.cli` says."""
    statuses = {result.status for result in results}
    if statuses & set(FAILED):
        return 1
    if "not started" in statuses:
        return 3
    return 0 if statuses == {"passed"} else 4


def show_note(progress: Progress) -> None:
    """What went wrong with the record itself, if anything did."""
    if progress.note:
        print(f"note: {progress.note}", file=sys.stderr)
