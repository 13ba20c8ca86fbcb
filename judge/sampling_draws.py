"""Owns the comparison of many draws with the distribution that they come from. No torch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from judge import compare, sampling_oracle
from judge.api import Case, Difference
from judge.sampling_compare import worded
from judge.wire import Raised

SIGMAS = 4.0


def shares(case: Case, expected: Any, got: Any) -> Difference | None:
    """Each token's share of the draws of one call lies within 4 sigma of its probability."""
    numbers = {**sampling_oracle.OFF, **case.payload["params"]}
    logits = case.payload["logits"]
    place = f"{case.label}; {worded(numbers)}"
    if isinstance(got, Raised) or not isinstance(got, list) or len(got) != len(expected):
        if isinstance(got, Raised):
            return compare.error_or_wrong(expected[:4], got, (place,))
        line = f"expected a list of {len(expected)} ints, got {compare.show(got, 80)}"
        return Difference((place, line))
    if any(type(token) is not int or not 0 <= token < len(logits) for token in got):
        line = f"expected ints from 0 to {len(logits) - 1}, got {compare.show(got, 80)}"
        return Difference((place, line))
    truth = sampling_oracle.filtered(logits, numbers)
    probability = np.where(truth.kept, np.exp(truth.scaled), 0.0)
    probability /= probability.sum()
    found = np.bincount(got, minlength=len(logits)) / len(got)
    for token, (want, have) in enumerate(zip(probability.tolist(), found.tolist(), strict=True)):
        sigma = math.sqrt(want * (1 - want) / len(got))
        if abs(have - want) > SIGMAS * sigma:
            lines = [f"token {token} has the probability {want:.4f} and was drawn in {have:.2%}"]
            lines.append(f"expected {_list(probability)}, got {_list(found)}")
            if sigma:
                lines.append(f"that is {abs(have - want) / sigma:.0f} sigma away, 4 are allowed")
            return Difference((place, *lines))
    return None


def _list(numbers: Any) -> str:
    return "[" + ", ".join(f"{number:.3f}" for number in numbers) + "]"
