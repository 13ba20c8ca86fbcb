"""Owns a tiny exercise with short time limits, for tests that misbehave on purpose."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judge import compare
from judge.api import Case, Check, CheckResult, Details, Exercise, ExerciseResult, Mistake
from judge.runner import Grader, Options, learner_source

TOY = Exercise(
    id="toy.half",
    chapter=99,
    title="Half of a number",
    file="toy_file.py",
    symbols=("half",),
    slot=None,
    needs_torch=False,
    minutes=1,
    reference="tests.judge.toy",
    module="tests.judge.toy",
)


def half(x: int) -> int:
    return x // 2


def half_up(x: int) -> int:
    return (x + 1) // 2


def cases(numbers: Sequence[Any]) -> Callable[[random.Random], Sequence[Case]]:
    def make(rng: random.Random) -> Sequence[Case]:
        drawn = [*numbers, rng.randrange(100 + numbers[0], 10**6, 2)]
        return [Case(f"half({x!r})", {"function": "half", "args": [x]}) for x in drawn]

    return make


CHECK = Check(
    "even", "half of even numbers", "judge.execute:call_function", cases([2, 4, 10]),
    compare.function_answer, limit_s=0.7,
)  # fmt: skip
ODD = replace(CHECK, name="odd", title="half of odd numbers", cases=cases([1, 3, 7]))
LIST = replace(
    CHECK, name="list", title="a list stays as it is",
    cases=lambda rng: [Case("half([4])", {"function": "half", "args": [[4]]})],
    compare=lambda case, expected, got: compare.function_answer(case, {"value": 2}, got),
)  # fmt: skip
EXERCISE = Details(
    checks=(CHECK, ODD),
    hints=("Which half?", "Both halves add up.", "divide"),
    mistakes=(Mistake("rounded up", {"half": "tests.judge.toy:half_up"}),),
)


def grade(folder: Path, code: str, *checks: Check, **options: Any) -> ExerciseResult:
    """Grade `code` as the toy exercise, with the real judge and a real file."""
    file = folder / TOY.file
    file.write_text(code, encoding="utf-8")
    grader = Grader(TOY, learner_source(TOY, file), Options(seed=7, **options))
    grader.details = replace(EXERCISE, checks=checks or EXERCISE.checks)
    return grader.run()


def first(folder: Path, code: str, *checks: Check) -> CheckResult:
    """The result of the first check (one check only, unless others are given)."""
    return grade(folder, code, *(checks or (CHECK,))).results[0]
