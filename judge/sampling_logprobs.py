"""Owns the comparison of log probabilities, of one call and of whole requests. No torch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from judge import compare, sampling_compare, tensor_compare
from judge.api import Ask, Case, Difference
from judge.wire import Array, Foreign

FIELDS = ("token_id", "logprob", "rank", "top")
ALLOWED = 1e-6  # relative to the largest logit: a float32 log-sum-exp of a row, and 1e-5 at least


def one_call(case: Case, expected: Any, got: Any) -> Difference | None:
    """Every entry, number by number."""
    wanted, value = expected["value"], got["value"]
    if not isinstance(value, list) or len(value) != len(wanted):
        return compare.error_or_wrong(_short(wanted), _short(value), (case.label,))
    logits = tensor_compare.exact(case.payload["logits"])
    for row, (want, have) in enumerate(zip(wanted, value, strict=True)):
        line = _wrong_entry(want, have, allowed(logits[row]), logits[row])
        if line:
            asked = f"row {row}: token {want['token_id']}, {case.payload['counts'][row]} asked"
            return Difference((case.label, f"{asked}: {line}"))
    if got.get("changed"):
        return Difference((case.label, *tensor_compare.changed_lines(got["changed"])))
    return None


def _short(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return Foreign("list", f"{len(value)} entries")


def allowed(row: Any) -> float:
    """How far a log probability of this row may be off."""
    return float(max(1e-5, ALLOWED * abs(row[np.isfinite(row)]).max()))


def _wrong_entry(want: Any, have: Any, off: float, row: Any) -> str:
    """What is wrong with one entry, or "". Lists in the place of tuples are taken."""
    if not isinstance(have, dict):
        return f"expected a TokenLogprobs, got {compare.show(have, 80)}"
    for name in ("token_id", "rank"):
        if type(have[name]) is not int or have[name] != want[name]:
            return f"{name}: expected {want[name]}, got {compare.show(have[name], 60)}"
    if not _near(want["logprob"], have["logprob"], off):
        return f"logprob: expected {want['logprob']:.6f}, got {compare.show(have['logprob'], 60)}"
    top = have["top"]
    if not isinstance(top, (list, tuple)) or len(top) != len(want["top"]):
        return f"top: expected {len(want['top'])} pairs, got {compare.show(top, 80)}"
    for place, ((token, logprob), pair) in enumerate(zip(want["top"], top, strict=True)):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            return f"top[{place}]: expected a pair, got {compare.show(pair, 60)}"
        tied = type(pair[0]) is int and 0 <= pair[0] < len(row) and row[pair[0]] == row[token]
        if not (tied and _near(logprob, pair[1], off)):
            return f"top[{place}]: expected ({token}, {logprob:.6f}), got {compare.show(pair, 60)}"
    if len({pair[0] for pair in top}) < len(top):
        return f"top holds a token twice: {compare.show(top, 80)}"
    return ""


def _near(want: float, have: Any, off: float) -> bool:
    return type(have) is float and (have == want or abs(have - want) <= off)


def rounded(answer: Any) -> Any:
    """What two runs of one mistake have in common: numbers to two digits, whatever holds them."""
    if isinstance(answer, float):
        return round(answer, 2) if math.isfinite(answer) else str(answer)
    if isinstance(answer, Array) and answer.shape in ((), (1,)):
        return [answer.dtype, rounded(float(answer.numpy().reshape(-1)[0]))]
    if isinstance(answer, dict):
        return {name: rounded(value) for name, value in answer.items()}
    if isinstance(answer, (list, tuple)):
        return [rounded(value) for value in answer]
    return answer


def look(case: Case, expected: Any, got: Any, ask: Ask) -> Difference | None:
    """The engine's tokens as ever, then the logprobs of every request."""
    return sampling_compare.look(case, expected, got, ask) or _told(case, expected, got)


def in_engine(case: Case, expected: Any, got: Any) -> Difference | None:
    """The same of two answers alone."""
    return sampling_compare.in_engine(case, expected, got) or _told(case, expected, got)


def _told(case: Case, expected: Any, got: Any) -> Difference | None:
    """Logits of two runs may differ in their last bits, so numbers may, too: see FLOOR."""
    place = f"inside the engine: {case.label}"
    for request_id, wanted in expected["logprobs"].items():
        have = got["logprobs"].get(request_id)
        if wanted is None and have is None:
            continue
        if not isinstance(have, list) or len(have) != len(wanted):
            asked = (
                f"expected {len(wanted)} entries, one per token, got {compare.show(_short(have))}"
            )
            return Difference((place, f"{request_id}: {asked}"))
        for number, (want, found) in enumerate(zip(wanted, have, strict=True)):
            line = _wrong_told(want, found)
            if line:
                return Difference((place, f"{request_id}, output {number}: {line}"))
    return None


FLOOR = 1e-3


def _wrong_told(want: Any, have: Any) -> str:
    size = 1 + max([want["token_id"], *(token for token, _ in want["top"])])
    return _wrong_entry(want, have, FLOOR, np.arange(size, dtype=float))
