"""Owns likely confusions about the six steps of `graphs.find-the-bug`."""

from __future__ import annotations

from judge.solutions.graph_bugs import broken_rules


def _swapped(one: str, other: str) -> dict[str, str]:
    rules = broken_rules()
    rules[one], rules[other] = rules[other], rules[one]
    return rules


def refusals() -> dict[str, str]:
    """B and D."""
    return _swapped("B", "D")


def frozen() -> dict[str, str]:
    """A and F: both answer as at capture."""
    return _swapped("A", "F")


def leftovers() -> dict[str, str]:
    """C and E: both show something old."""
    return _swapped("C", "E")


def fills() -> dict[str, str]:
    """C and F: both have a `fill` of their own."""
    return _swapped("C", "F")


def first_replay() -> dict[str, str]:
    """F answers zeros at once."""
    return broken_rules() | {"F": "warm-up"}


def too_small() -> dict[str, str]:
    """C goes wrong once the number of requests has changed."""
    return broken_rules() | {"C": "largest"}
