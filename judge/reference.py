"""Owns the answers of the reference, and of the known mistakes, which run where it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judge import wire
from judge.api import Case, Check, Context, resolve
from judge.execute import raised
from judge.sandbox import Source, Worker

LIMIT_S = 300.0  # a reference that takes longer is a fault of the judge, and is reported as one


class Reference:
    """Runs the reference parts: in this process, or with torch in one of its own."""

    def __init__(
        self, parts: Mapping[str, str], *, torch: bool, device: str, slot: str | None
    ) -> None:
        self._source = Source(parts=parts, torch=torch, device=device, slot=slot)
        self._worker = Worker(self._source) if torch else None
        if self._worker is not None:
            self._worker.start()

    def ready(self) -> None:
        """Wait until its process, if it has one, has imported what it needs."""
        if self._worker is not None:
            self._worker.ready()

    def answers(
        self, check: Check, cases: Sequence[Case], stand_ins: Mapping[str, str] | None = None
    ) -> list[Any]:
        """One answer per case; `stand_ins` ("module:name" by symbol) replace reference parts."""
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

    def close(self) -> None:
        """End its process, if it has one."""
        if self._worker is not None:
            self._worker.close()
