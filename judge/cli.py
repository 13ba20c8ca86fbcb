"""Owns the command line of the judge: what `python practice/judge.py ...` does.

Exit codes: 0 all that was asked for passed; 1 something failed; 2 wrong usage; 3 nothing failed but
something is not started; 4 nothing failed but checks were skipped here (no GPU, no model); 5 the
reference itself failed, so there is no verdict; 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from judge import practice
from judge.commands import show
from judge.commands.grade import grade, seed_of_failure
from judge.exercises import find
from judge.progress import Progress
from judge.reference import JudgeFault
from judge.report import SCRIPT, Reporter
from judge.runner import Options

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
            return show.hint(show.next_exercise(progress), progress, reporter)
        action = show.list_exercises if args.list else show.overview
        return action(progress, reporter)
    exercises = find(args.target)
    if args.only or args.debug or args.repro or args.hint:
        if len(exercises) > 1:
            names = ", ".join(e.id for e in exercises)
            raise ValueError(f"{args.target} is more than one exercise; name one of {names}")
        if args.hint:
            return show.hint(exercises[0], progress, reporter)
    if args.debug or args.repro:
        from judge.closer import debug, repro

        check = args.debug or args.repro
        options = Options(
            seed=args.seed if args.seed is not None else seed_of_failure(progress, exercises[0]),
            only=check,
            device=args.device,
        )
        closer = debug if args.debug else repro
        return closer(exercises[0], folder, options, reporter)
    return grade(exercises, args, progress, reporter)
