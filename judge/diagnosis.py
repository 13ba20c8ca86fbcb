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

Answers = Callable[[Mistake, Check, Sequence[Case]], list[Any]]


@dataclass(frozen=True)
class Evidence:
    """All answers to one check: those expected, and the learner's."""

    check: Check
    cases: Sequence[Case]
    expected: list[Any]
    got: list[Any]
    passed: bool


def fitting_mistake(
    mistakes: Sequence[Mistake], evidence: Mapping[str, Evidence], first: str, answers: Answers
) -> str | None:
    """The name of the mistake that explains the failure of the check `first`, or None."""
    names = set()
    for mistake in mistakes:
        if mistake.checks and first not in mistake.checks:
            continue
        if _explains(mistake, evidence[first], answers) and not _contradicted(
            mistake, evidence, first, answers
        ):
            names.add(mistake.name)
    return names.pop() if len(names) == 1 else None


def _explains(mistake: Mistake, seen: Evidence, answers: Answers) -> bool:
    """Whether the mistake gives the learner's answers."""
    return _agrees(seen, answers(mistake, seen.check, seen.cases))


def _contradicted(
    mistake: Mistake, evidence: Mapping[str, Evidence], first: str, answers: Answers
) -> bool:
    """Whether some other check shows something that the mistake would not do."""
    for name, seen in evidence.items():
        if name == first or seen.check.last:
            continue
        theirs = answers(mistake, seen.check, seen.cases)
        right = _passes(seen, theirs)
        if seen.passed and not right:
            return True
        if not seen.passed and not right and not _agrees(seen, theirs):
            return True
    return False


def _agrees(seen: Evidence, theirs: list[Any]) -> bool:
    """Whether these answers and the learner's look like one mistake."""
    ours, mine = _normal(seen, theirs), _normal(seen, seen.got)
    if seen.check.fingerprint is not None:
        ours, mine = ([seen.check.fingerprint(a) for a in some] for some in (ours, mine))
    return same(ours, mine, exact_errors=True)


def _passes(seen: Evidence, theirs: list[Any]) -> bool:
    triples = zip(seen.cases, _normal(seen, seen.expected), _normal(seen, theirs), strict=True)
    return all(
        not isinstance(have, Raised) and seen.check.compare(case, want, have) is None
        for case, want, have in triples
    )


def _normal(seen: Evidence, answers: list[Any]) -> list[Any]:
    normalize = seen.check.normalize
    if normalize is None:
        return answers
    pairs = zip(seen.cases, answers, strict=True)
    return [a if isinstance(a, Raised) else normalize(case, a) for case, a in pairs]
