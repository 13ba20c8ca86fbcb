"""Owns grading: runs the checks of one exercise against a file and decides.

The learner's part runs in a child process; the reference runs in this process for torch-free
checks and in a process of its own otherwise. Only this process sees both answers.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from judge import compare, wire
from judge.allowance import Allowance
from judge.api import (
    FAILED,
    Ask,
    Case,
    Check,
    CheckResult,
    Difference,
    Exercise,
    ExerciseResult,
    Mistake,
)
from judge.diagnosis import Evidence, fitting_mistake
from judge.exercises import stub_lines
from judge.models import NAMES, REAL, RealModel
from judge.reference import JudgeFault, Reference
from judge.sandbox import ChildFailed, Source, Worker
from judge.workers import Workers

MAX_DEATHS = 2  # children lost in one exercise before the remaining checks are left out
GOOD_START = 2  # checks that pass before torch is imported for later ones
FOR_ALL = "for all cases of this check together"
NOT_SEEN = (
    "with a tiny random model in the shadow model's place, this workload gives the right tokens "
    "all the same"
)
REFERENCE_FACTOR = 20.0  # a learner's part may take this many times what the reference took


@dataclass(frozen=True)
class Options:
    """How to grade. `only` keeps the checks whose names contain it; `models` are those chosen
    ("tiny", "smollm2"); `missing` says why a chosen one can't be used; `earlier` names the checks
    that passed before with this very code; `device` is "auto", "cpu" or "cuda".
    """

    seed: int
    only: str | None = None
    device: str = "auto"
    models: Sequence[str] = NAMES
    missing: Mapping[str, str] = field(default_factory=dict)
    earlier: tuple[str, ...] = ()
    real: RealModel | None = None  # in SmolLM2's place
    known: dict[Any, Any] | None = None  # answers of the reference and of mistakes, kept
    on_check: Callable[[CheckResult], None] | None = None
    closer: bool = True  # a failure without torch may be looked at with it


class Grader:
    """Grades one exercise in one file; `run()` gives the result.

    The processes are those of `workers`, which may serve other exercises before and after; without
    it every process ends with the grading.
    """

    def __init__(
        self,
        exercise: Exercise,
        source: Source,
        options: Options,
        workers: Workers | None = None,
    ) -> None:
        self.exercise = exercise
        self.source = source
        self.options = options
        self.details = exercise.details()
        self.deaths = 0
        self.evidence: dict[str, Evidence] = {}
        self.shared = workers
        self.workers = workers or Workers()
        self.learners: dict[bool, Worker] = {}
        self.references: dict[bool, Reference] = {}
        self.device = "cpu"
        self.notes: list[str] = []
        self.unloadable = False  # its file can't be imported, or lacks what is graded

    def run(self) -> ExerciseResult:
        """All checks in their order; never raises for what the learner's code does."""
        file = self.source.file
        result = ExerciseResult(self.exercise, str(file) if file else "", self.options.seed)
        started = time.monotonic()
        try:
            for check in self.selected():
                found = self._verdict(check, result.results)
                result.results.append(found)
                self._look_ahead(result.results)
                if self.options.on_check is not None:
                    self.options.on_check(found)
            self._name_mistake(result)
        finally:
            if self.shared is None:
                self.workers.close()
        result.seconds = time.monotonic() - started
        result.notes = self.notes
        return result

    def selected(self) -> list[Check]:
        """The checks to run. Raises ValueError if `only` fits none."""
        only = self.options.only
        checks = [c for c in self.details.checks if only is None or only in c.name]
        if not checks:
            names = ", ".join(check.name for check in self.details.checks)
            raise ValueError(f"{self.exercise.id} has no check {only!r}; it has: {names}")
        exact = [check for check in checks if check.name == only]
        return exact or [check for check in checks if not check.spare or self._is_needed(checks)]

    def _is_needed(self, checks: Sequence[Check]) -> bool:
        """Whether a spare check runs: SmolLM2 is wanted, and no check runs on it."""
        wanted = REAL in self.options.models
        has_one = any(REAL in check.needs for check in checks)
        return wanted and not (has_one and REAL not in self.options.missing)

    def cases(self, check: Check) -> Sequence[Case]:
        """The cases of a check; the same for the same seed, whichever other checks run."""
        name = check.answers_of or check.name
        rng = random.Random(f"{self.options.seed}/{self.exercise.id}/{name}")
        cases = check.cases(rng)
        if self.options.real is None or REAL not in check.needs:
            return cases
        return [self.options.real.case(case) for case in cases]

    def _verdict(self, check: Check, before: list[CheckResult]) -> CheckResult:
        started = time.monotonic()
        reason = self._left_out(check, before)
        if reason is None:
            try:
                found = self._run(check)
            except ChildFailed as failure:
                found = self._failed(check, failure)
        else:
            found = CheckResult(check, reason[0], lines=[reason[1]])
        found.seconds = time.monotonic() - started
        return found

    def _left_out(self, check: Check, before: list[CheckResult]) -> Any:
        """(status, why) of a check that is not run, or None."""
        if self.unloadable:
            return "not run", "the file has to load first"
        if self.deaths >= MAX_DEATHS:
            return "not run", f"left out after {self.deaths} lost processes"
        if check.kind == "policy" and any(
            r.check.kind == "contract" and r.status in FAILED for r in before
        ):
            return "not run", "policy is looked at once the contract holds"
        if check.last and _contract_failed(before):
            return "not run", "runs once the checks before it pass"
        excluded = self._excluded(check)
        on_gpu = self._chosen(self._needs_torch(check)) == "cuda"
        if excluded is None and (on_gpu or "cuda" in check.needs):
            try:
                info = self._worker(torch=True).ready()
            except ChildFailed:
                return None  # running the check reports it
            if not info.get("cuda"):
                return "skipped", "needs a GPU that torch can use, and there is none"
        return excluded

    def _excluded(self, check: Check) -> Any:
        """(status, why) of a check that the options leave out, or None."""
        if check.name in self.options.earlier:
            return "passed", "passed earlier with this very code"
        for model in NAMES:
            if model in check.needs and model not in self.options.models:
                return "not run", f"needs the model {model}; --model {model} runs it"
            if model in check.needs and model in self.options.missing:
                return "skipped", self.options.missing[model]
        if "cuda" in check.needs and self.options.device == "cpu":
            return "not run", "needs a GPU, and --device is cpu"
        return None

    def _run(self, check: Check) -> CheckResult:
        seen = self.evidence.get(check.answers_of or "")
        if seen is not None:
            return self._looked_at_again(check, seen)
        cases = self.cases(check)
        torch = self._needs_torch(check)
        if torch and self.options.known is None:
            self._reference(torch)  # starts its process: both import at the same time
        worker = self._worker(torch)
        worker.forget_output()
        allowance = Allowance(check.limit_s, FOR_ALL)
        expected: list[Any] = []
        answers: list[Any] = []
        worst: CheckResult | None = None
        reference_s = 0.0
        for number, case in enumerate(cases):
            worker.ask(check.execute, case.payload)  # runs while the reference runs
            right, seconds = self._expected(check, case, number)
            expected.append(right)
            reference_s += seconds
            if number == 0:
                info = worker.ready()  # importing has its own limit
                self._note_torch(info)
                self._note_reference(info)
            _scale(allowance, reference_s)
            try:
                got = worker.answer(allowance)
            except ChildFailed as failure:
                return worst or self._failed(check, failure, case, number)
            answers.append(got)
            ask = self._ask(check, worker, case, allowance.limit_s)
            difference = self.judge(check, case, right, got, ask)
            if difference is not None and worst is None:
                difference = self._closer(check, case, difference)
                worst = _failing(check, difference, case, number, right, got)
                worst.output = worker.output
                if difference.status == "not started":
                    break
            if not worker.alive:  # it died in a further run, which `look` has reported
                break
        if len(answers) == len(cases) and check.kind == "contract":
            self.evidence[check.name] = Evidence(
                check, cases, expected, answers, worst is None, worst.case_number if worst else 0
            )
        return worst or CheckResult(check, "passed", output=worker.output)

    def _closer(self, check: Check, case: Case, difference: Difference) -> Difference:
        """What a check with torch finds in a case that failed without it, if it finds anything."""
        if check.closer is None or difference.status != "wrong" or not self.options.closer:
            return difference
        other, its_case = check.closer(case)
        try:
            found = self._alone(other, its_case)
        except ChildFailed:
            self._lose(torch=True)
            return difference
        if found is None:
            return replace(difference, lines=(*difference.lines, NOT_SEEN))
        return found

    def _alone(self, check: Check, case: Case) -> Difference | None:
        """The verdict on one case of a check. Raises ChildFailed if there is no answer."""
        torch = self._needs_torch(check)
        self._reference(torch)
        worker = self._worker(torch)
        worker.ask(check.execute, case.payload)
        expected, seconds = self._timed(check, case)
        worker.ready()
        allowance = Allowance(check.limit_s)
        _scale(allowance, seconds)
        got = worker.answer(allowance)
        ask = self._ask(check, worker, case, allowance.limit_s)
        return self.judge(check, case, expected, got, ask)

    def _looked_at_again(self, check: Check, seen: Evidence) -> CheckResult:
        """The verdict on answers that were given to another check."""
        for number, case in enumerate(seen.cases):
            expected, got = seen.expected[number], seen.got[number]
            difference = self.judge(check, case, expected, got)
            if difference is not None:
                return _failing(check, difference, case, number, expected, got)
        return CheckResult(check, "passed")

    def _note_torch(self, info: Mapping[str, Any]) -> None:
        """A torch-free part loads torch: that costs time in every run, and fails nothing."""
        seconds = info.get("torch_s")
        if isinstance(seconds, float) and self.source.file is not None and not self.notes:
            self.notes.append(
                f"{self.source.file.name} loads torch when it is imported: {seconds:.1f} s of this "
                "run; this exercise needs no torch, so import it inside the functions that do"
            )

    def _note_reference(self, info: Mapping[str, Any]) -> None:
        """What the file only imports from the engine is graded, but is nobody's solution."""
        homes = info.get("homes")
        if self.source.file is None or not isinstance(homes, dict):
            return
        for symbol in self.exercise.symbols:
            if homes.get(symbol) == self.exercise.reference:
                kind = "class" if symbol[:1].isupper() else "function"
                note = (f"{symbol} in {self.source.file.name} is the reference's own {kind}, "
                        f"imported from {self.exercise.reference}")  # fmt: skip
                if note not in self.notes:
                    self.notes.append(note)

    def _expected(
        self, check: Check, case: Case, number: int, stand_ins: Mapping[str, str] | None = None
    ) -> tuple[Any, float]:
        """What the reference, or a mistake, answers, and how long it took (0 if it was known)."""
        known = self.options.known
        parts = tuple(sorted((stand_ins or {}).items()))
        key = (self.exercise.id, check.name, self.options.seed, number, parts)
        if known is not None and key in known:
            return known[key], 0.0
        answer, seconds = self._timed(check, case, stand_ins)
        if known is not None:
            known[key] = answer
        return answer, seconds

    def _timed(
        self, check: Check, case: Case, stand_ins: Mapping[str, str] | None = None
    ) -> tuple[Any, float]:
        reference = self._reference(self._needs_torch(check))
        reference.ready()
        started = time.monotonic()
        (answer,) = reference.answers(check, [case], stand_ins)
        return answer, time.monotonic() - started

    def _ask(self, check: Check, worker: Worker, case: Case, limit_s: float) -> Ask:
        """Further runs for `check.look`; each has the check's time limit."""
        torch = self._needs_torch(check)

        def theirs(payload: Any) -> Any:
            try:
                worker.ask(check.execute, payload)
                return worker.answer(limit_s)
            except ChildFailed:
                self._lose(torch)
                raise

        def ours(payload: Any) -> Any:
            return self._reference(torch).answers(check, [replace(case, payload=payload)])[0]

        return Ask(theirs, ours, self._chosen(torch))

    def judge(
        self, check: Check, case: Case, expected: Any, got: Any, ask: Ask | None = None
    ) -> Difference | None:
        """What is wrong with one answer, or None. Without `ask` nothing is run again."""
        stub = compare.find_raised(got, "ExerciseNotStarted")
        if stub is not None:
            lines = stub_lines(self.exercise, stub.message)
            return Difference(tuple(lines), "not started", stub.frames)
        look = check.look if ask is not None else None
        if isinstance(got, wire.Raised) and look is None:
            lines = [case.label, f"it raised {compare.show(got)}", *compare.about_raised(got)]
            return Difference(tuple(lines), "error", got.frames)
        try:
            if check.normalize is not None:
                expected, got = check.normalize(case, expected), check.normalize(case, got)
            if look is not None and ask is not None:
                return look(case, expected, got, ask)
            return check.compare(case, expected, got)
        except JudgeFault:
            raise
        except Exception as error:  # an answer of an impossible form must not stop the judge
            what = f"{type(error).__name__}: {error}"
            return Difference((case.label, f"the answer can't be compared ({what})"), "error")

    def _name_mistake(self, result: ExerciseResult) -> None:
        """Give the first failure the name of the known mistake that explains it, if one does."""
        failed = result.first_failure
        if failed is None or failed.check.name not in self.evidence or failed.mistake:
            return

        def answer(mistake: Mistake, check: Check, case: Case, number: int) -> Any:
            return self._expected(check, case, number, mistake.parts)[0]

        failed.mistake = fitting_mistake(
            self.details.mistakes, self.evidence, failed.check.name, answer
        )

    def _failed(
        self,
        check: Check,
        failure: ChildFailed,
        case: Case | None = None,
        number: int = 0,
    ) -> CheckResult:
        """The verdict on a child that gave no answer; the next check gets a new one."""
        worker = self._lose(self._needs_torch(check))
        output = worker.output if worker is not None else ""
        lines = [case.label] if case is not None else []
        lines += failure.lines
        if failure.raised is not None:
            lines += [compare.show(failure.raised), *compare.about_raised(failure.raised)]
            if "ExerciseNotStarted" in failure.raised.types:
                found = stub_lines(self.exercise, failure.raised.message)
                return CheckResult(check, "not started", lines=found)
        self.unloadable = case is None
        hangs = case is not None and failure.status == "timeout"
        return CheckResult(
            check, failure.status, case=case, case_number=number, lines=lines,
            mistake=case.notes.get("if_timeout") if case and hangs else None,
            frames=failure.frames, output=output,
        )  # fmt: skip

    def _lose(self, torch: bool) -> Worker | None:
        """End the learner's process; the next check gets a new one. Returns what it was."""
        worker = self.learners.pop(torch, None)
        if worker is not None:
            self.workers.end(worker)
        self.deaths += 1
        return worker

    def _needs_torch(self, check: Check) -> bool:
        return self.exercise.needs_torch or bool(
            {"torch", "cuda", "tiny", "smollm2"} & set(check.needs)
        )

    def _worker(self, torch: bool) -> Worker:
        worker = self.learners.get(torch)
        if worker is None or not worker.alive:
            source = replace(self.source, torch=torch, device=self._chosen(torch))
            worker = self.learners[torch] = self.workers.learner(source)
        return worker

    def _reference(self, torch: bool) -> Reference:
        if torch not in self.references:
            source = reference_source(self.exercise)
            source = replace(source, torch=torch, device=self._chosen(torch))
            self.references[torch] = self.workers.reference(source)
        return self.references[torch]

    def _look_ahead(self, before: Sequence[CheckResult]) -> None:
        """Let torch be imported while torch-free checks run, once these look good.

        Not at once: a stub or a quick failure has its verdict before torch would be there. If a
        later check fails, what was started in vain ends.
        """
        if self.options.known is not None:  # many files one after another: nothing is idle
            return
        failed = _contract_failed(before)
        rest = self.selected()[len(before) :]
        needed = any(
            self._needs_torch(check) and not (failed and check.last) and not self._excluded(check)
            for check in rest
        )
        if needed and not failed and len(before) >= GOOD_START:
            self._reference(torch=True)
            self._worker(torch=True)
        elif failed and not needed and True in self.learners:
            self.workers.call_off()

    def _chosen(self, torch: bool) -> str:
        """Where tensor checks run. "auto" stays on the CPU: checks that need a GPU say so."""
        return "cuda" if torch and self.options.device == "cuda" else "cpu"


def _failing(
    check: Check, difference: Difference, case: Case, number: int, expected: Any, got: Any
) -> CheckResult:
    """The verdict on a check whose case `number` is the first that differs."""
    return CheckResult(
        check, difference.status, case=case, case_number=number, lines=list(difference.lines),
        frames=difference.frames, schedules=difference.schedules, expected=expected, got=got,
    )  # fmt: skip


def _scale(allowance: Allowance, reference_s: float) -> None:
    """Give a check more time where the reference itself takes long on this machine."""
    scaled = REFERENCE_FACTOR * reference_s
    if scaled > allowance.limit_s:
        allowance.limit_s = scaled
        allowance.why = f"{REFERENCE_FACTOR:.0f} times what the reference took here, {FOR_ALL}"


def _contract_failed(results: Sequence[CheckResult]) -> bool:
    contract = [r for r in results if r.check.kind == "contract"]
    return any(r.status in (*FAILED, "not started") for r in contract)


def learner_source(exercise: Exercise, file: Path) -> Source:
    """What the child loads to grade `file`."""
    return Source(
        file=file.resolve(),
        symbols=exercise.symbols,
        torch=exercise.needs_torch,
        slot=exercise.slot,
    )


def reference_source(exercise: Exercise) -> Source:
    """What the child loads to grade the reference itself (self-test and `--doctor`)."""
    return Source(parts=exercise.reference_parts(), torch=exercise.needs_torch, slot=exercise.slot)
