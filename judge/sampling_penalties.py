"""Owns the comparison of penalized logits with a float64 oracle. No torch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from judge import tensor_compare
from judge.api import Case, Difference
from judge.compare import counted
from judge.tensor_compare import ROUNDING, TINY, Truth
from judge.wire import Array

FORBIDDEN = np.float32(-1e30)  # stands for -inf, which has no difference from itself


def oracle(payload: Any) -> Truth:
    """One entry at a time. Allowed: four roundings of what is added up, doubled."""
    logits, prompts, outputs, *columns = payload["args"]
    numbers, allowed = logits.astype(np.float64), np.empty(logits.shape)
    for row, logit in enumerate(numbers):
        repetition, frequency, presence = (np.float64(column[row]) for column in columns)
        for token in set(prompts[row]) | set(outputs[row]):
            value = logit[token]
            logit[token] = value / repetition if value > 0 else value * repetition
        size = abs(logit)
        for token in set(outputs[row]):
            count = outputs[row].count(token)
            logit[token] -= frequency * count + presence
            size[token] += abs(frequency * count) + abs(presence)
        allowed[row] = 8 * ROUNDING["float32"] * size + TINY
    numbers[np.isneginf(numbers)] = FORBIDDEN
    return Truth(numbers, np.where(np.isfinite(allowed), allowed, TINY), ("row", "token"))


def finite(case: Case, answer: Any) -> Any:
    """The same answer with FORBIDDEN in the place of -inf."""
    value = answer.get("value") if isinstance(answer, dict) else None
    if not isinstance(value, Array) or value.dtype != "float32":
        return answer
    numbers = value.numpy()
    data = np.where(np.isneginf(numbers), FORBIDDEN, numbers).astype("<f4").tobytes()
    return {**answer, "value": replace(value, data=data)}


def penalized(case: Case, expected: Any, got: Any) -> Difference | None:
    """As for every tensor, with what the first wrong token has been used for."""
    found = tensor_compare.against(case, expected, got, oracle)
    value = got["value"]
    if found is None or not isinstance(value, Array) or value.shape != expected["value"].shape:
        return found
    truth, have = oracle(case.payload), value.numpy().astype(np.float64)
    wrong = ~(abs(have - truth.numbers) <= truth.allowed)
    if not wrong.any():
        return found
    row, token = (int(index) for index in np.argwhere(wrong)[0])
    return Difference((*found.lines, _about(case.payload, row, token)), found.status, found.frames)


def _about(payload: Any, row: int, token: int) -> str:
    logits, prompts, outputs, *columns = payload["args"]
    uses = [counted(tokens[row].count(token), "time") for tokens in (prompts, outputs)]
    numbers = [f"{name} {column[row]:.4g}" for name, column in
               zip(("repetition", "frequency", "presence"), columns, strict=True)]  # fmt: skip
    return (
        f"token {token}: logit {logits[row, token]:.6g}, {uses[0]} in the prompt, {uses[1]} in the "
        f"output; {', '.join(numbers)}"
    )
