"""Owns the words of the judge: exercise, check, case, mistake, difference, result.

An exercise module (see `judge/__init__.py` for how to write one) fills these in; runner, report,
self-test and notebook helpers read nothing else.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from judge.wire import Frame

Kind = Literal["contract", "policy"]
Status = Literal[
    "passed", "wrong", "error", "timeout", "crashed", "not started", "skipped", "not run"
]
FAILED: tuple[Status, ...] = ("wrong", "error", "timeout", "crashed")


@dataclass(frozen=True)
class Case:
    """One thing to try. `payload` travels to the child as plain values and arrays (see `wire`)."""

    label: str
    payload: Any
    notes: Mapping[str, Any] = field(default_factory=dict)  # stays with the judge


@dataclass(frozen=True)
class Schedules:
    """The traces of the reference and of the learner's engine, and the step that matters.

    `lines` show the steps around it side by side, as text. `stopped`: the learner's engine raised
    in the step after its last record.
    """

    expected: Sequence[Any]
    got: Sequence[Any]
    step: int
    lines: tuple[str, ...]
    stopped: bool = False


@dataclass(frozen=True)
class Difference:
    """What is wrong with an answer, as lines to read: expected, got, where, state before.

    `schedules` are those of both sides, where the part ran inside the engine.
    """

    lines: tuple[str, ...]
    status: Status = "wrong"
    frames: tuple[Frame, ...] = ()
    schedules: Schedules | None = None


@dataclass(frozen=True)
class Ask:
    """Further runs of a check's `execute` on another payload, after the first answer is known.

    `theirs` runs the learner's part and raises ChildFailed if it gives no answer; `ours` runs the
    reference's. What a payload tells the learner's process must change no verdict in its favour.
    """

    theirs: Callable[[Any], Any]
    ours: Callable[[Any], Any]
    device: str = "cpu"


@dataclass(frozen=True)
class Check:
    """One promise of an exercise.

    `cases(rng)` makes the cases, in the judge's process. `execute` names a function "module:name",
    `execute(parts, payload, context)`, that runs in the child with the learner's parts and in
    another process with the reference's; it returns plain values, arrays and `Raised`s, and knows
    no expected value. `normalize(case, answer)` brings legal variety to one form. `compare(case,
    expected, got)` returns a Difference, or None if the answer is right. `needs` holds "torch",
    "cuda", "smollm2". A `last` check runs only when all contract checks before it passed.
    The time limit is `limit_s`, or 20 times what the reference took if that is more: seconds of CPU
    time, or seconds asleep (see `allowance`). `look(case, expected, got, ask)`, where there is one,
    decides in the place of `compare` and may ask for further runs. `fingerprint(answer)` is what
    two runs of one known mistake have in common. `script(case)` writes the whole case as lines to
    read, for `--debug`, where a verdict shows a part of it. A policy that fails differs from what
    it `follows`. `closer(case)` gives another check, with torch, and a case for it: it looks closer
    at a case that failed here, and what it finds is said in the place of this check's words. A
    `spare` check runs only by name, or where SmolLM2 is wanted and no check here can run on it.
    `answers_of` names an earlier check with the same `cases` and `execute`: this one looks at the
    answers that were given there.
    """

    name: str
    title: str
    execute: str
    cases: Callable[[random.Random], Sequence[Case]]
    compare: Callable[[Case, Any, Any], Difference | None]
    kind: Kind = "contract"
    normalize: Callable[[Case, Any], Any] | None = None
    needs: tuple[str, ...] = ()
    last: bool = False
    limit_s: float = 5.0
    look: Callable[[Case, Any, Any, Ask], Difference | None] | None = None
    fingerprint: Callable[[Any], Any] | None = None
    script: Callable[[Case], Sequence[str]] | None = None
    follows: str = "the reference"
    closer: Callable[[Case], tuple[Check, Case]] | None = None
    spare: bool = False
    answers_of: str | None = None


@dataclass(frozen=True)
class Mistake:
    """A known wrong implementation. Its name is shown only if it explains the first failing check
    (the learner's answers in every case) and no other check contradicts it; see `diagnosis`.

    `parts` maps a symbol of the exercise to "module:name"; the others are the reference's. `checks`
    limits it to some checks (all if empty).
    """

    name: str
    parts: Mapping[str, str]
    checks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Details:
    """What an exercise module holds under the name EXERCISE.

    `hints` are those of the whole exercise. One of several functions may have three of its own:
    `hints_for` holds them by the name of the check whose failure they answer.
    """

    checks: tuple[Check, ...]
    hints: tuple[str, str, str]
    mistakes: tuple[Mistake, ...] = ()
    hints_for: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Exercise:
    """A row of the table of exercises. `slot` is a field of EngineParts, or None: a plain function.

    `file` lies in the practice folder, `symbols` are what the learner writes in it, `reference` is
    the module that has the same names. `module` holds the checks and is imported when needed.
    Exercises that let one class grow share its `region`: their code stands between one pair of
    marks. `in_engine` is False for one that "your engine" needs not wait for.
    """

    id: str
    chapter: int
    title: str
    file: str
    symbols: tuple[str, ...]
    slot: str | None
    needs_torch: bool
    minutes: int
    reference: str
    module: str
    region: str | None = None
    in_engine: bool = True

    @property
    def mark(self) -> str:
        """The name in the marks around its code."""
        return self.region or self.id

    @property
    def topic(self) -> str:
        return self.id.partition(".")[0]

    def details(self) -> Details:
        found: Details = importlib.import_module(self.module).EXERCISE
        return found

    def reference_parts(self) -> dict[str, str]:
        return {symbol: f"{self.reference}:{symbol}" for symbol in self.symbols}


@dataclass(frozen=True)
class Context:
    """What an `execute` function may know beside its payload."""

    device: str = "cpu"
    slot: str | None = None


@dataclass
class CheckResult:
    """The verdict on one check; `lines` explain it, `case` is the first that failed."""

    check: Check
    status: Status
    seconds: float = 0.0
    case: Case | None = None
    case_number: int = 0
    lines: list[str] = field(default_factory=list)
    schedules: Schedules | None = None
    mistake: str | None = None
    frames: tuple[Frame, ...] = ()
    output: str = ""
    expected: Any = None
    got: Any = None


@dataclass
class ExerciseResult:
    """The verdict on one exercise: `file` is what was graded, `seed` repeats the cases."""

    exercise: Exercise
    file: str
    seed: int
    results: list[CheckResult] = field(default_factory=list)
    seconds: float = 0.0
    line: int = 1
    notes: list[str] = field(default_factory=list)  # what is worth a sentence and fails nothing

    @property
    def status(self) -> Status:
        """The contract decides: a policy that differs is reported and fails nothing.

        "skipped" if nothing failed but a check could not run on this machine: that is not green.
        """
        contract = [r for r in self.results if r.check.kind == "contract"]
        failed = [r for r in contract if r.status in FAILED]
        if failed:
            return failed[0].status
        if any(r.status == "not started" for r in contract):
            return "not started"
        if any(r.status == "passed" for r in contract):
            return "skipped" if any(r.status == "skipped" for r in contract) else "passed"
        ran = [r for r in self.results if r.status in ("passed", *FAILED)]
        return "passed" if ran and not contract else "skipped"  # only policy was asked for

    @property
    def first_failure(self) -> CheckResult | None:
        """The first failing contract check, else the first failing policy check."""
        failed = [r for r in self.results if r.status in FAILED]
        failed.sort(key=lambda r: r.check.kind == "policy")  # stable: contract first
        return failed[0] if failed else None


def resolve(name: str) -> Any:
    """The object that "module:attribute" names."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)
