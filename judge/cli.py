"""Owns the command line of the judge: what `python practice/judge.py ...` does.

Exit codes: 0 all that was asked for passed or was done; 1 something failed, differs or (--update)
is left to do; 2 wrong usage, or a file that can't be read or changed; 3 nothing failed but
something is not started, or (--solution) not shown yet; 4 nothing failed but checks were skipped
here (no GPU, no model); 5 the reference itself failed, so there is no verdict; 130 Ctrl-C (--watch
ends with 0).
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from judge import practice
from judge.api import Exercise
from judge.backups import NotChanged
from judge.commands import show
from judge.commands.grade import grade, seed_of_failure, start_from
from judge.exercises import find
from judge.models import RealModel, chosen
from judge.progress import Progress
from judge.reference import JudgeFault
from judge.report import SCRIPT, Reporter
from judge.runner import Options
from judge.sandbox import ROOT

FOR_ONE = ("hint", "solution", "reset", "debug", "repro", "only")
EPILOG = (__doc__ or "").partition("\n\n")[2]


def parser() -> argparse.ArgumentParser:
    """The arguments, with their help."""
    found = argparse.ArgumentParser(
        prog=SCRIPT, description="Grades the exercises of the course.", epilog=EPILOG
    )
    found.add_argument("target", nargs="?", help="an exercise, a topic (paged-kv) or a chapter "
        "(ch02); without it: progress and what is next")  # fmt: skip
    grading = found.add_argument_group("grading")
    add = grading.add_argument
    add("--from", dest="start", metavar="NAME", help="from this exercise, topic or chapter on, in "
        "the order of the course")  # fmt: skip
    add("--only", metavar="CHECK", help="only the checks whose names contain this")
    add("--seed", type=int, help="repeat the cases of an earlier run")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto")
    add("--model", metavar="tiny|smollm2|FOLDER", help="tiny: leave SmolLM2 out; smollm2: run it "
        "again although it passed with this code; FOLDER: a Hugging Face model of the Llama or "
        "Qwen3 family in SmolLM2's place")  # fmt: skip
    add("--json", action="store_true", help="the verdict as JSON")
    add("--no-color", action="store_true")
    add("-v", "--verbose", action="store_true", help="all frames of a traceback, not only yours")
    _add_commands(found)
    found.add_argument("--yes", action="store_true", help="with --solution: although hints are "
        "left")  # fmt: skip
    return found


def _add_commands(found: argparse.ArgumentParser) -> None:
    group = found.add_argument_group("instead of a verdict, one of")
    add = group.add_mutually_exclusive_group().add_argument
    add("--watch", action="store_true", help="a fresh verdict after each save of a practice file; "
        "Ctrl-C ends it, with code 0; SmolLM2 only with --model smollm2")  # fmt: skip
    add("--hint", action="store_true", help="the next of three hints")
    add("--solution", action="store_true", help="the reference's code; progress remembers that it "
        "was shown")  # fmt: skip
    add("--reset", action="store_true", help="the exercise back to its published stub; your file "
        "as it was is kept in work/backups")  # fmt: skip
    add("--debug", metavar="CHECK", help="run the failing case here: prints visible, pdb usable")
    add("--repro", metavar="CHECK", help="write the failing case as a small script of its own")
    add("--mine", action="store_true", help="your engine: every part of yours that passed, the "
        "reference for the rest; it answers, and is compared token by token")  # fmt: skip
    add("--update", action="store_true", help="after git pull: bring the new release into work/; "
        "what you changed is merged, and kept in work/backups as it was")  # fmt: skip
    add("--list", action="store_true", help="all exercises")
    add("--doctor", action="store_true", help="versions, devices, model; the reference against "
        "itself")  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    args = parser().parse_args(arguments)
    for name in ("SIGTERM", "SIGHUP"):  # told to end; its terminal was closed
        number = getattr(signal, name, None)  # not every system has both
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:  # nohup ignores it
            signal.signal(number, _terminated)
    reporter = Reporter(plain=args.no_color, verbose=args.verbose)
    try:
        return _run(args, reporter)
    except (ValueError, FileNotFoundError, NotChanged) as error:
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
    except OSError as error:  # a folder that is read-only, a disk that is full; it names the file
        print(f"judge: {error}", file=sys.stderr)
        return 2


def _terminated(number: int, frame: Any) -> NoReturn:
    raise SystemExit(128 + number)  # leaves through every `finally`, so the child ends too


def _run(args: argparse.Namespace, reporter: Reporter) -> int:
    if args.doctor:
        from judge.doctor import examine

        return examine(reporter)
    _, real = chosen(args.model)  # an unusable --model is an error before anything is graded
    folder = practice.folder()
    if args.update:
        from judge.commands.update import update

        return update(ROOT, folder, reporter)
    if args.start and (args.target or args.watch):
        raise ValueError(f"--from {args.start} grades to the end, once; give it alone")
    if args.watch:
        from judge.commands.watching import Watch

        return Watch(args, folder, reporter).run()
    progress = Progress(folder)
    if args.mine:
        from judge.commands.mine import mine

        return mine(args, progress, reporter)
    if args.list:
        return show.list_exercises(progress, reporter)
    if any(getattr(args, name) for name in FOR_ONE):
        return _about_one(_one(args, progress), args, progress, reporter, real)
    if args.start:
        return grade(start_from(args.start), args, progress, reporter)
    if args.target is None:
        return show.overview(progress, reporter)
    return grade(find(args.target), args, progress, reporter)


def _one(args: argparse.Namespace, progress: Progress) -> Exercise:
    """The exercise that is meant; for a hint, without a name, the next one."""
    if args.target is None and args.hint:
        return show.next_exercise(progress)
    flag = next(name for name in FOR_ONE if getattr(args, name))
    if args.target is None:
        check = " CHECK" if flag in ("debug", "repro", "only") else ""
        raise ValueError(f"--{flag} needs an exercise: {SCRIPT} EXERCISE --{flag}{check}")
    found = find(args.target)
    if len(found) > 1:
        names = ", ".join(exercise.id for exercise in found)
        raise ValueError(f"{args.target} is more than one exercise; name one of {names}")
    return found[0]


def _about_one(
    exercise: Exercise,
    args: argparse.Namespace,
    progress: Progress,
    reporter: Reporter,
    real: RealModel | None,
) -> int:
    folder = progress.folder
    if args.hint:
        return show.hint(exercise, progress, reporter)
    if args.solution:
        from judge.commands.solution import solution

        return solution(exercise, progress, reporter, sure=args.yes)
    if args.reset:
        from judge.commands.reset import reset

        return reset(exercise, folder, reporter, ROOT / "practice")
    if args.debug or args.repro:
        from judge.closer import debug, repro

        seed = args.seed if args.seed is not None else seed_of_failure(progress, exercise)
        options = Options(seed=seed, only=args.debug or args.repro, device=args.device, real=real)
        closer = debug if args.debug else repro
        return closer(exercise, folder, options, reporter)
    return grade([exercise], args, progress, reporter)
