"""Owns the answers of the reference, and of the known mistakes, which run where it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judge import wire
from judge.api import Case, Check, Context, resolve
from judge.compare import show
from judge.execute import raised
from judge.sandbox import ChildFailed, Source, Worker

LIMIT_S = 300.0  # a reference that takes longer is a fault of the judge, and is reported as one


class JudgeFault(RuntimeError):
    """The reference itself failed: nothing can be said about the learner's part."""


class Reference:
    """Runs the reference parts of one exercise: in this process, or with torch in `worker`.

    The worker may have run those of another exercise before; it ends with whoever started it.
    """

    def __init__(self, source: Source, worker: Worker | None = None) -> None:
        self._source = source
        self._worker = worker
        if worker is not None and worker.source != source:
            worker.load(source)

    def ready(self) -> None:
        """Wait until its process, if it has one, has imported what it needs."""
        try:
            if self._worker is not None:
                self._worker.ready()
        except ChildFailed as failure:
            raise _fault("its process did not start", failure) from failure

    def answers(
        self, check: Check, cases: Sequence[Case], stand_ins: Mapping[str, str] | None = None
    ) -> list[Any]:
        """One answer per case; `stand_ins` ("module:name" by symbol) replace reference parts.

        Raises JudgeFault if the reference can't answer; a stand-in may end in an exception.
        """
        try:
            found = self._answers(check, cases, stand_ins)
        except ChildFailed as failure:
            raise _fault(f"in the check {check.name}", failure) from failure
        for case, answer in zip(cases, found, strict=True):
            if isinstance(answer, wire.Raised) and not stand_ins:
                raise JudgeFault(f"the reference failed in {case.label}: {show(answer)}")
        return found

    def _answers(
        self, check: Check, cases: Sequence[Case], stand_ins: Mapping[str, str] | None
    ) -> list[Any]:
        if self._worker is None:
            names = {**self._source.parts, **(stand_ins or {})}
            parts = {symbol: resolve(name) for symbol, name in names.items()}
            return [self._run_here(check, case, parts) for case in cases]
        found = []
        for case in cases:
            self._worker.ask(check.execute, case.payload, stand_ins)
            found.append(self._worker.answer(LIMIT_S))
        return found

    def _run_here(self, check: Check, case: Case, parts: Mapping[str, Any]) -> Any:
        context = Context(device="cpu", slot=self._source.slot)
        try:
            answer = resolve(check.execute)(parts, wire.copy(case.payload), context)
        except Exception as error:  # a known mistake may raise where the reference does not
            answer = raised(error)
        return wire.copy(answer)


def _fault(where: str, failure: ChildFailed) -> JudgeFault:
    lines = [*failure.lines, *([show(failure.raised)] if failure.raised else [])]
    return JudgeFault(f"the reference failed, {where}: {'; '.join(lines)}")
