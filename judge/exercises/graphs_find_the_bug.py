"""Owns the checks, hints and known mistakes of `graphs.find-the-bug`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from judge import compare
from judge.api import Case, Check, Details, Difference, Mistake
from judge.wire import Raised

RULES = ("waits", "shapes", "addresses", "numbers", "results", "padding", "warm-up", "largest")
STEPS = ("A", "B", "C", "D", "E", "F")


def all_steps(rng: random.Random) -> Sequence[Case]:
    """In another order each time: the first wrong one is what a verdict speaks of."""
    return [Case("broken_rules()", {"steps": rng.sample(STEPS, len(STEPS))})]


def form(case: Case, expected: Any, got: Any) -> Difference | None:
    """A rule for each step, none twice. Which is right is another check's business."""
    value = got.get("rules") if isinstance(got, dict) else got
    if isinstance(value, Raised) or not isinstance(value, dict):
        return compare.error_or_wrong(dict.fromkeys(STEPS, "a rule"), value, (case.label,))
    if sorted(map(str, value)) != list(STEPS):
        keys = compare.show(sorted(map(str, value)), 80)
        return Difference((case.label, f"expected a rule for each of {list(STEPS)}, got {keys}"))
    for step in STEPS:
        if value[step] not in RULES:
            shown = compare.show(value[step], 60)
            return Difference((f"step {step}: {shown} is no rule; known: {', '.join(RULES)}",))
    for rule in RULES:
        named = [step for step in STEPS if value[step] == rule]
        if len(named) > 1:
            line = f"{' and '.join(named)} can't both break {rule!r}: no rule is broken twice"
            return Difference((line,))
    return None


def right(case: Case, expected: Any, got: Any) -> Difference | None:
    """How many rules are right, and what capture and replay show of the first wrong step.

    The evidence is that of the reference's process: the learner's can't change it.
    """
    found = form(case, expected, got)
    if found is not None:
        return found
    steps = case.payload["steps"]
    wrong = [step for step in steps if got["rules"][step] != expected["rules"][step]]
    if not wrong:
        return None
    step = wrong[0]
    lines = (
        f"{len(steps) - len(wrong)} of {len(steps)} are right",
        f"step {step} does not break {got['rules'][step]!r}; captured and replayed:",
        *expected["seen"][step],
    )
    return Difference(lines)


def _check(name: str, title: str, comparison: Any) -> Check:
    return Check(
        name, title, "judge.graph_evidence:rules", all_steps, comparison, needs=("torch",),
        limit_s=10.0,
    )  # fmt: skip


EXERCISE = Details(
    checks=(
        _check("form", "a known rule for each step, none twice", form),
        _check("rules", "the rules that capture and replay show to be broken", right),
    ),
    hints=(
        "Two steps are refused at capture, and the message says what was waited for. Of the other "
        "four: is the first replay wrong already, or only a later one? And which of the three "
        "methods differs from the same method of the other steps?",
        "Go through the three moments of a step. `fill` runs before each replay: does it write "
        "into the memory that the graph reads, into all of it? `forward` ran once: what in it was "
        "an ordinary number then? `answer` hands something on: who writes there next?",
        "for each step:\n"
        "    run happens(step); if it is refused, read which operation and why\n"
        "    else mark in `forward` everything that is no tensor, and ask who sets it\n"
        "    compare the tensors that `fill` assigns with those it writes into\n"
        "    count the rows that `fill` leaves as they were\n"
        "    ask whether `answer` gives a copy or the graph's own memory",
    ),
    mistakes=tuple(
        Mistake(name, {"broken_rules": f"judge.mistakes.graph_bugs:{function}"})
        for name, function in (
            (
                "both refused steps ask for numbers, and one of them asks how many there are",
                "refusals",
            ),
            ("two steps answer as at capture, each for a reason of its own", "frozen"),
            ("two steps show something old, each from another place", "leftovers"),
            ("two steps fill their rows unlike the others, each in its own way", "fills"),
            ("every step was captured after a warm-up", "first_replay"),
            ("no step of the script has more than four requests", "too_small"),
        )
    ),
)
