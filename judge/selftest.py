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
    seed: int
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

    def add(self, trial: Trial, problem: str | None, seconds: float) -> None:
        self.total[trial.kind] = self.total.get(trial.kind, 0) + 1
        self.done[trial.kind] = self.done.get(trial.kind, 0) + (problem is None)
        self.seconds += seconds
        if problem is not None:
            name = trial.file.name if trial.file else "reference"
            self.problems.append(f"{trial.kind} {name}, seed {trial.seed}: {problem}")

    def share(self, kind: str) -> str:
        return f"{self.done.get(kind, 0)}/{self.total.get(kind, 0)}"


def trials(exercise: Exercise, seeds: int) -> Iterator[Trial]:
    """All that has to be graded for one exercise."""
    stub = STUBS / exercise.file
    for seed in range(seeds):
        yield Trial(exercise, "reference", None, seed)
        yield Trial(exercise, "stub", stub, seed)
        for file in sorted((MUTANTS / exercise.id).glob("*.py")):
            yield Trial(exercise, "mutant", file, seed, diagnosis_of(file))
        for file in sorted((ALTERNATIVES / exercise.id).glob("*.py")):
            yield Trial(exercise, "alternative", file, seed)


def diagnosis_of(file: Path) -> str | None:
    """The mistake that the first line of a mutant names. Raises ValueError without one."""
    first = file.read_text("utf-8").partition("\n")[0]
    if not first.startswith(PREFIX):
        raise ValueError(f"{file} must start with {PREFIX!r}")
    name = first.removeprefix(PREFIX).strip()
    return None if name == "none" else name


def grade(
    trial: Trial,
    known: dict[tuple[str, str, int], list[Any]],
    free: queue.SimpleQueue[Workers],
) -> tuple[Trial, str | None, float]:
    """Grade one file with one of the `free` sets of processes; the reference's are kept."""
    started = time.monotonic()
    workers = free.get()
    models = ("tiny",) if importlib.util.find_spec("torch") else ()
    options = Options(seed=trial.seed, models=models, known=known)
    try:
        result = Grader(trial.exercise, trial.source(), options, workers).run()
    finally:
        workers.end_learners()  # every file has a process of its own
        free.put(workers)
    return trial, trial.problem(result), time.monotonic() - started


def run(exercises: list[Exercise], seeds: int, workers: int) -> dict[str, Tally]:
    """Grade everything; a tally per exercise."""
    tallies = {exercise.id: Tally() for exercise in exercises}
    todo = [trial for exercise in exercises for trial in trials(exercise, seeds)]
    free: queue.SimpleQueue[Workers] = queue.SimpleQueue()
    with contextlib.ExitStack() as stack:
        for _ in range(workers):
            free.put(stack.enter_context(Workers()))
        pool = stack.enter_context(ThreadPoolExecutor(workers))
        graded = pool.map(functools.partial(grade, known={}, free=free), todo)
        for trial, problem, seconds in graded:
            tallies[trial.exercise.id].add(trial, problem, seconds)
    for exercise in exercises:
        tally = tallies[exercise.id]
        for kind, least in (("mutant", LEAST_MUTANTS), ("alternative", LEAST_ALTERNATIVES)):
            files = tally.total.get(kind, 0) // seeds
            if files < least:
                tally.problems.append(f"{files} {kind}s, at least {least} are needed")
    return tallies


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
    tallies = run(exercises, args.seeds, args.workers)
    kinds = ("reference", "stub", "mutant", "alternative")
    print(f"{'exercise':<28}" + "".join(f"{kind:>13}" for kind in kinds) + f"{'seconds':>10}")
    for name, tally in tallies.items():
        row = "".join(f"{tally.share(kind):>13}" for kind in kinds)
        print(f"{name:<28}{row}{tally.seconds:>10.1f}")
        for problem in tally.problems:
            print(f"  SHORT  {problem}")
    short = sum(len(tally.problems) for tally in tallies.values())
    files = sum(sum(tally.total.values()) for tally in tallies.values())
    verdict = "all as they must be" if not short else f"{short} fell short"
    print(f"{files} gradings of {len(tallies)} exercises on {args.seeds} seeds: {verdict}; "
          f"{time.monotonic() - started:.1f} s")  # fmt: skip
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
