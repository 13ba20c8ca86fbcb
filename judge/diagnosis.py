"""Owns naming a mistake: a name is given only if nothing that was seen contradicts it.

Known mistakes are wrong implementations (`judge/mistakes/`). One fits if, put in the learner's
place, it gives the learner's very answers in every case of the first failing check; if in every
other check it is right too or gives the learner's answers; and if it is right wherever the learner
is. A second, unrelated mistake elsewhere therefore does not hide a name, but a wrong explanation
does not survive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge.api import Case, Check, Mistake
from judge.compare import same
from judge.wire import Raised

Answer = Callable[[Mistake, Check, Case, int], Any]  # what a mistake answers to case number ...


@dataclass(frozen=True)
class Evidence:
    """All answers to one check: those expected, and the learner's. `first` is the case that failed
    first, or 0."""

    check: Check
    cases: Sequence[Case]
    expected: list[Any]
    got: list[Any]
    passed: bool
    first: int = 0

    def numbers(self) -> list[int]:
        """The cases, the one that tells most first: most mistakes are ruled out by it."""
        return sorted(range(len(self.cases)), key=lambda number: number != self.first)


def fitting_mistake(
    mistakes: Sequence[Mistake], evidence: Mapping[str, Evidence], first: str, answer: Answer
) -> str | None:
    """The name of the mistake that explains the failure of the check `first`, or None."""
    names: set[str] = set()
    for mistake in mistakes:
        if mistake.name in names or (mistake.checks and first not in mistake.checks):
            continue
        if _explains(mistake, evidence[first], answer) and not _contradicted(
            mistake, evidence, first, answer
        ):
            names.add(mistake.name)
    return names.pop() if len(names) == 1 else None


def _explains(mistake: Mistake, seen: Evidence, answer: Answer) -> bool:
    """Whether the mistake gives the learner's answers."""
    return all(
        _agrees(seen, number, answer(mistake, seen.check, seen.cases[number], number))
        for number in seen.numbers()
    )


def _contradicted(
    mistake: Mistake, evidence: Mapping[str, Evidence], first: str, answer: Answer
) -> bool:
    """Whether some other check shows something that the mistake would not do."""
    return any(
        _unlike(mistake, seen, answer)
        for name, seen in evidence.items()
        if name != first and not seen.check.last
    )


def _unlike(mistake: Mistake, seen: Evidence, answer: Answer) -> bool:
    """Whether the mistake is wrong in a check, and not as the learner is."""
    right, agrees = True, not seen.passed
    for number in seen.numbers():
        theirs = answer(mistake, seen.check, seen.cases[number], number)
        right = right and _passes(seen, number, theirs)
        agrees = agrees and _agrees(seen, number, theirs)
        if not right and not agrees:
            return True
    return False


def _agrees(seen: Evidence, number: int, theirs: Any) -> bool:
    """Whether this answer and the learner's look like one mistake."""
    ours, mine = _normal(seen, number, theirs), _normal(seen, number, seen.got[number])
    if seen.check.fingerprint is not None:
        ours, mine = seen.check.fingerprint(ours), seen.check.fingerprint(mine)
    return same(ours, mine, exact_errors=True)


def _passes(seen: Evidence, number: int, theirs: Any) -> bool:
    have = _normal(seen, number, theirs)
    if isinstance(have, Raised):
        return False
    want = _normal(seen, number, seen.expected[number])
    return seen.check.compare(seen.cases[number], want, have) is None


def _normal(seen: Evidence, number: int, answer: Any) -> Any:
    normalize = seen.check.normalize
    if normalize is None or isinstance(answer, Raised):
        return answer
    return normalize(seen.cases[number], answer)
