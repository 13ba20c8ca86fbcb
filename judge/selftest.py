"""Owns the test of the judge itself: `python -m judge.selftest`.

Per exercise: the reference passes, the stub passes nothing and counts as not started, every mutant
in tests/mutants is rejected with the diagnosis that its first line names ("# mistake: NAME" or
"# mistake: none"), every file in tests/alternatives passes. The last line is the sum; exit code 1
if anything falls short.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib.util
import queue
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judge.api import FAILED, Exercise, ExerciseResult
from judge.exercises import EXERCISES, find
from judge.runner import Grader, Options, learner_source, reference_source
from judge.sandbox import ROOT, Source
from judge.workers import Workers

MUTANTS, ALTERNATIVES, STUBS = (
    ROOT / "tests/mutants",
    ROOT / "tests/alternatives",
    ROOT / "practice",
)
LEAST_MUTANTS, LEAST_ALTERNATIVES = 8, 3
PREFIX = "# mistake: "


@dataclass(frozen=True)
class Trial:
    """One file to grade, and what must come out."""

    exercise: Exercise
    kind: str  # "reference", "stub", "mutant" or "alternative"
    file: Path | None
    diagnosis: str | None = None

    def source(self) -> Source:
        if self.file is None:
            return reference_source(self.exercise)
        return learner_source(self.exercise, self.file)

    def problem(self, result: ExerciseResult) -> str | None:
        """What fell short, or None."""
        passed = sum(found.status == "passed" for found in result.results)
        if self.kind == "stub":
            right = passed == 0 and result.status == "not started"
            return None if right else f"status {result.status}, {passed} checks passed"
        failed = result.first_failure
        if self.kind in ("reference", "alternative"):
            if result.status == "passed":
                return None
            reason = f"{failed.check.name}: {'; '.join(failed.lines)}" if failed else "incomplete"
            return f"status {result.status}, {reason}"
        if result.status not in FAILED or failed is None:
            return f"not rejected (status {result.status})"
        if failed.mistake != self.diagnosis:
            return f"{failed.check.name}: diagnosis {failed.mistake!r}, expected {self.diagnosis!r}"
        return None


@dataclass
class Tally:
    """What came out for one exercise."""

    done: dict[str, int] = field(default_factory=dict)
    total: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, trial: Trial, problems: list[str | None], seconds: float) -> None:
        """Count one file; `problems` holds one entry per seed."""
        self.total[trial.kind] = self.total.get(trial.kind, 0) + len(problems)
        self.done[trial.kind] = self.done.get(trial.kind, 0) + problems.count(None)
        self.seconds += seconds
        name = trial.file.name if trial.file else "reference"
        self.problems += [
            f"{trial.kind} {name}, seed {seed}: {problem}"
            for seed, problem in enumerate(problems)
            if problem is not None
        ]

    def check_counts(self, seeds: int) -> None:
        """Note it if there are fewer mutants or alternatives than an exercise must have."""
        for kind, least in (("mutant", LEAST_MUTANTS), ("alternative", LEAST_ALTERNATIVES)):
            files = self.total.get(kind, 0) // seeds
            if files < least:
                self.problems.append(f"{files} {kind}s, at least {least} are needed")

    def share(self, kind: str) -> str:
        return f"{self.done.get(kind, 0)}/{self.total.get(kind, 0)}"


def trials(exercise: Exercise) -> Iterator[Trial]:
    """All that has to be graded for one exercise."""
    yield Trial(exercise, "reference", None)
    yield Trial(exercise, "stub", STUBS / exercise.file)
    for file in sorted((MUTANTS / exercise.id).glob("*.py")):
        yield Trial(exercise, "mutant", file, diagnosis_of(file))
    for file in alternatives(exercise):
        yield Trial(exercise, "alternative", file)


def alternatives(exercise: Exercise) -> list[Path]:
    """Its own, and those that serve every exercise of its region."""
    folders = dict.fromkeys((exercise.id, exercise.mark))
    return [file for name in folders for file in sorted((ALTERNATIVES / name).glob("*.py"))]


def diagnosis_of(file: Path) -> str | None:
    """The mistake that the first line of a mutant names. Raises ValueError without one."""
    first = file.read_text("utf-8").partition("\n")[0]
    if not first.startswith(PREFIX):
        raise ValueError(f"{file} must start with {PREFIX!r}")
    name = first.removeprefix(PREFIX).strip()
    return None if name == "none" else name


def grade(
    trial: Trial,
    seeds: int,
    known: dict[Any, Any],
    free: queue.SimpleQueue[Workers],
) -> tuple[Trial, list[str | None], float]:
    """Grade one file on each seed with one of the `free` sets of processes.

    The reference's process is kept for the next file, the learner's is not.
    """
    started = time.monotonic()
    models = ("tiny",) if importlib.util.find_spec("torch") else ()
    problems = []
    workers = free.get()
    try:
        for seed in range(seeds):
            options = Options(seed=seed, models=models, known=known, closer=False)
            result = Grader(trial.exercise, trial.source(), options, workers).run()
            problems.append(trial.problem(result))
    finally:
        workers.end_learners()
        free.put(workers)
    return trial, problems, time.monotonic() - started


def run(exercises: list[Exercise], seeds: int, workers: int) -> Iterator[tuple[str, Tally]]:
    """Grade everything; (id, tally) of each exercise in order, as soon as it is complete."""
    free: queue.SimpleQueue[Workers] = queue.SimpleQueue()
    with contextlib.ExitStack() as stack:
        for _ in range(workers):
            free.put(stack.enter_context(Workers()))
        pool = stack.enter_context(ThreadPoolExecutor(workers))
        one = functools.partial(grade, seeds=seeds, known={}, free=free)
        graded = [(exercise, pool.map(one, trials(exercise))) for exercise in exercises]
        for exercise, results in graded:
            tally = Tally()
            for trial, problems, seconds in results:
                tally.add(trial, problems, seconds)
            tally.check_counts(seeds)
            yield exercise.id, tally


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m judge.selftest", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, from 0 (default 1)")
    parser.add_argument("--only", help="an exercise, a topic or a chapter")
    parser.add_argument("--workers", type=int, default=2, help="files graded at once (default 2)")
    args = parser.parse_args(arguments)
    if args.seeds < 1 or args.workers < 1:
        parser.error("--seeds and --workers must be 1 or more")
    exercises = find(args.only) if args.only else list(EXERCISES)
    started = time.monotonic()
    kinds = ("reference", "stub", "mutant", "alternative")
    print(f"{'exercise':<28}" + "".join(f"{kind:>13}" for kind in kinds) + f"{'seconds':>10}")
    tallies = []
    for name, tally in run(exercises, args.seeds, args.workers):
        tallies.append(tally)
        row = "".join(f"{tally.share(kind):>13}" for kind in kinds)
        print(f"{name:<28}{row}{tally.seconds:>10.1f}", flush=True)
        for problem in tally.problems:
            print(f"  SHORT  {problem}", flush=True)
    short = sum(len(tally.problems) for tally in tallies)
    files = sum(sum(tally.total.values()) for tally in tallies)
    verdict = "all as they must be" if not short else f"{short} fell short"
    print(f"{files} gradings of {len(tallies)} exercises on {args.seeds} seeds: {verdict}; "
          f"{time.monotonic() - started:.1f} s")  # fmt: skip
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
