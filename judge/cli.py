"""Owns the command line of the judge: what `python practice/judge.py ...` does.

Exit codes: 0 all that was asked for passed; 1 something failed; 2 wrong usage; 3 nothing failed but
something is not started; 4 nothing failed but checks were skipped here (no GPU, no model); 5 the
reference itself failed, so there is no verdict; 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from judge import practice
from judge.api import FAILED, Exercise, ExerciseResult
from judge.exercises import EXERCISES, find
from judge.progress import Progress
from judge.reference import JudgeFault
from judge.report import SCRIPT, Reporter, as_data
from judge.runner import Grader, Options, learner_source
from judge.workers import Workers

EPILOG = (__doc__ or "").partition("\n\n")[2]


def parser() -> argparse.ArgumentParser:
    """The arguments, with their help."""
    found = argparse.ArgumentParser(
        prog=SCRIPT, description="Grades the exercises of the course.", epilog=EPILOG
    )
    add = found.add_argument
    add("target", nargs="?", help="an exercise, a topic (paged-kv) or a chapter (ch02); "
        "without it: progress and what is next")  # fmt: skip
    add("--only", metavar="CHECK", help="only the checks whose names contain this")
    add("--seed", type=int, help="repeat the cases of an earlier run")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto")
    add("--model", choices=("tiny", "smollm2"), help="tiny: leave SmolLM2 out; smollm2: run it "
        "again although it passed with this code")  # fmt: skip
    add("--hint", action="store_true", help="the next of three hints")
    add("--debug", metavar="CHECK", help="run the failing case here: prints visible, pdb usable")
    add("--repro", metavar="CHECK", help="write the failing case as a small script of its own")
    add("--list", action="store_true", help="all exercises")
    add(
        "--doctor",
        action="store_true",
        help="versions, devices, model; the reference against itself",
    )
    add("--json", action="store_true", help="the verdict as JSON")
    add("--no-color", action="store_true")
    add("-v", "--verbose", action="store_true", help="all frames of a traceback, not only yours")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    args = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _terminated)
    reporter = Reporter(plain=args.no_color, verbose=args.verbose)
    try:
        return _run(args, reporter)
    except (ValueError, FileNotFoundError) as error:
        print(f"judge: {error}", file=sys.stderr)
        return 2
    except JudgeFault as fault:
        print(
            f"judge: {fault}\nthis is no verdict; {SCRIPT} --doctor looks closer", file=sys.stderr
        )
        return 5
    except KeyboardInterrupt:
        reporter.line("stopped; nothing is left running")
        return 130
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _terminated(number: int, frame: Any) -> NoReturn:
    raise SystemExit(128 + number)  # leaves through every `finally`, so the child ends too


def _run(args: argparse.Namespace, reporter: Reporter) -> int:
    if args.doctor:
        from judge.doctor import examine

        return examine(reporter)
    folder = practice.folder()
    progress = Progress(folder)
    if args.list or args.target is None:
        for flag in ("only", "debug", "repro"):
            if getattr(args, flag):
                raise ValueError(f"--{flag} needs an exercise: {SCRIPT} EXERCISE --{flag} CHECK")
        if args.hint:
            return _hint(_next_exercise(progress), progress, reporter)
        return _list(progress, reporter) if args.list else _overview(progress, reporter)
    exercises = find(args.target)
    if args.only or args.debug or args.repro or args.hint:
        if len(exercises) > 1:
            names = ", ".join(e.id for e in exercises)
            raise ValueError(f"{args.target} is more than one exercise; name one of {names}")
        if args.hint:
            return _hint(exercises[0], progress, reporter)
    if args.debug or args.repro:
        from judge.closer import debug, repro

        check = args.debug or args.repro
        options = Options(
            seed=args.seed if args.seed is not None else _seed_of_failure(progress, exercises[0]),
            only=check,
            device=args.device,
        )
        action = debug if args.debug else repro
        return action(exercises[0], folder, options, reporter)
    return _grade(exercises, args, progress, reporter)


def _grade(
    exercises: list[Exercise], args: argparse.Namespace, progress: Progress, reporter: Reporter
) -> int:
    seed = args.seed if args.seed is not None else new_seed()
    if not args.json:
        reporter.line(f"grading {progress.folder.describe()}")
    results = []
    with Workers() as workers:
        for exercise in exercises:
            results.append(_grade_one(exercise, seed, args, progress, reporter, workers))
            if args.only is None:
                progress.record(results[-1])
                progress.save()
    if args.json:
        print(json.dumps([as_data(result) for result in results], indent=1))
    elif len(results) > 1:
        reporter.line()
        passed = sum(result.status == "passed" for result in results)
        reporter.line(f"{passed} of {len(results)} exercises passed")
    if progress.note:
        print(f"note: {progress.note}", file=sys.stderr)
    return exit_code(results)


def _grade_one(
    exercise: Exercise,
    seed: int,
    args: argparse.Namespace,
    progress: Progress,
    reporter: Reporter,
    workers: Workers,
) -> ExerciseResult:
    file = progress.folder.path / exercise.file
    if not file.is_file():
        raise FileNotFoundError(f"{practice.shown(file)} is missing; it holds {exercise.id}")
    line = practice.line_of(exercise, file)
    options = make_options(
        seed, args, earlier=() if args.model == "smollm2" else progress.earlier(exercise),
        on_check=None if args.json else reporter.check,
    )  # fmt: skip
    if not args.json:
        reporter.line()
        reporter.line(f"{exercise.id}  {exercise.title}  {practice.shown(file)}:{line}", "bold")
    result = Grader(exercise, learner_source(exercise, file), options, workers).run()
    result.line = line
    if not args.json:
        hints = int(progress.entry(exercise).get("hints", 0))
        reporter.failure(result, min(hints, 2))
        reporter.summary(result)
    return result


def make_options(seed: int, args: argparse.Namespace, **extra: Any) -> Options:
    """Options from the arguments: without --model both are used, SmolLM2 once per version."""
    from judge.doctor import missing_models

    models = ("tiny",) if args.model == "tiny" else ("tiny", "smollm2")
    return Options(
        seed=seed, only=args.only, device=args.device, models=models,
        missing=missing_models(), **extra,
    )  # fmt: skip


def new_seed() -> int:
    return random.SystemRandom().randrange(1000, 10_000)


def _seed_of_failure(progress: Progress, exercise: Exercise) -> int:
    """The seed of the last failure of this exercise, so that --debug meets it again."""
    failure = progress.last_failure or {}
    seed = failure.get("seed") if failure.get("exercise") == exercise.id else None
    return seed if isinstance(seed, int) else new_seed()


def exit_code(results: Sequence[ExerciseResult]) -> int:
    """See the module's docstring."""
    statuses = {result.status for result in results}
    if statuses & set(FAILED):
        return 1
    if "not started" in statuses:
        return 3
    return 0 if statuses == {"passed"} else 4


def _next_exercise(progress: Progress) -> Exercise:
    for exercise in EXERCISES:
        if progress.status(exercise) != "passed":
            return exercise
    raise ValueError("every exercise has passed; there is none to go on with")


def _where(exercise: Exercise, progress: Progress) -> str:
    file = progress.folder.path / exercise.file
    return f"{practice.shown(file)}:{practice.line_of(exercise, file)}"


def _list(progress: Progress, reporter: Reporter) -> int:
    for exercise in EXERCISES:
        kind = f"slot {exercise.slot}" if exercise.slot else "graded as a function"
        torch = "torch" if exercise.needs_torch else "no torch"
        reporter.line(
            f"ch{exercise.chapter:02d}  {exercise.id:<26} {progress.status(exercise):<23} "
            f"{exercise.minutes:>3} min  {kind}, {torch}  {_where(exercise, progress)}"
        )
    return 0


def _overview(progress: Progress, reporter: Reporter) -> int:
    """Progress, the last failure and what is next."""
    reporter.line(f"practice folder: {progress.folder.describe()}")
    statuses = {exercise.id: progress.status(exercise) for exercise in EXERCISES}
    passed = sum(status == "passed" for status in statuses.values())
    reporter.line(f"{passed} of {len(EXERCISES)} exercises passed")
    for exercise in EXERCISES:
        status = statuses[exercise.id]
        label = "PASS" if status == "passed" else "-"
        reporter.labelled(f"  {label:<5}", f"{exercise.id:<26} {exercise.title} ({status})")
    failure = progress.last_failure
    if failure:
        reporter.line()
        reporter.line(f"last failure: {failure.get('exercise')} / {failure.get('check')}")
        for line in failure.get("lines", []):
            reporter.line(f"  {line}")
        reporter.line(f"  repeat: {SCRIPT} {failure.get('exercise')} --only {failure.get('check')} "
                      f"--seed {failure.get('seed')}")  # fmt: skip
    if passed < len(EXERCISES):
        exercise = _next_exercise(progress)
        reporter.line()
        reporter.line(f"next: {exercise.id}, about {exercise.minutes} minutes, in "
                      f"{_where(exercise, progress)}")  # fmt: skip
        reporter.line(f"  grade it: {SCRIPT} {exercise.id}")
    if progress.note:
        print(f"note: {progress.note}", file=sys.stderr)
    return 0


def _hint(exercise: Exercise, progress: Progress, reporter: Reporter) -> int:
    number = progress.next_hint(exercise)
    reporter.line(f"{exercise.id}, hint {number + 1} of 3", "bold")
    for line in exercise.details().hints[number].splitlines():
        reporter.line(f"  {line}")
    progress.save()
    if progress.note:
        print(f"note: {progress.note}", file=sys.stderr)
    return 0
