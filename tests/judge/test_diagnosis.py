"""Naming a mistake: whatever a known mistake does where it runs, the judge goes on."""

from __future__ import annotations

from typing import Any

from judge.api import Case, Check, Difference, Mistake
from judge.diagnosis import Evidence, fitting_mistake
from judge.wire import Raised


def same_number(case: Case, expected: Any, got: Any) -> Difference | None:
    return None if expected["n"] == got["n"] else Difference(("wrong",))


def evidence(name: str, expected: int, got: int) -> Evidence:
    check = Check(
        name, name, "", lambda rng: [], same_number, normalize=lambda case, a: {"n": a + 0}
    )
    return Evidence(check, [Case("one", None)], [expected], [got], expected == got)


def test_a_mistake_that_raises_in_another_check_is_contradicted_there() -> None:
    seen = {"first": evidence("first", 1, 2), "second": evidence("second", 3, 3)}
    answers: dict[str, dict[str, Any]] = {
        "raises": {"first": 2, "second": Raised(("KeyError", "Exception"), "lost")},
        "fits": {"first": 2, "second": 3},
    }
    mistakes = [Mistake(name, {}) for name in answers]

    def of(mistake: Mistake, check: Check, case: Case, number: int) -> Any:
        return answers[mistake.name][check.name]

    assert fitting_mistake(mistakes, seen, "first", of) == "fits"
    assert fitting_mistake(mistakes[:1], seen, "first", of) is None
