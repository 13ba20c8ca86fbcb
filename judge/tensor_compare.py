"""Owns the comparison of tensors with float64 oracles. Runs in the judge's process; no torch.

How far an answer may lie from the oracle follows from the arithmetic of its dtype, number by
number: see `rope_oracle` and `attention_oracle`. A better implementation is never outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judge import compare
from judge.api import Case, Difference
from judge.wire import Array

# Half the distance from 1 to the next number: the relative error of one rounding.
ROUNDING = {"float32": 2.0**-24, "bfloat16": 2.0**-8}
SUMS = ROUNDING["float32"]  # products of either dtype are summed in float32
TINY = 1e-30  # allowed where all that is summed is zero


@dataclass(frozen=True)
class Truth:
    """What a function must return: float64 numbers, and how far each may be off."""

    numbers: Any
    allowed: Any
    axes: tuple[str, ...]  # what each dimension counts, in the singular


SHOWN_WHOLE = 8  # numbers
Oracle = Callable[[Any], Truth]  # of the payload


def bfloat16(numbers: Any) -> Array:
    """Float32 numbers, rounded to the nearest bfloat16 (ties to even), as they travel."""
    bits = np.ascontiguousarray(numbers, dtype="<f4").view("<u4")
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")
    return Array("torch", "bfloat16", tuple(numbers.shape), "cpu", rounded.tobytes())


def exact(value: Any) -> Any:
    """The numbers of an argument in float64, whatever it travels as."""
    return np.asarray(value.numpy() if isinstance(value, Array) else value, dtype=np.float64)


def dtype_of(value: Any) -> str:
    return str(value.dtype)


def rope_oracle(payload: Any) -> Truth:
    """Pairs (i, i + head_dim / 2) turned by their angles.

    Allowed: two rounded products and a rounded sum, doubled.
    """
    x, cos, sin = (exact(value) for value in payload["args"])
    cos, sin = cos[:, None], sin[:, None]
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    numbers = np.concatenate((a * cos - b * sin, b * cos + a * sin), axis=-1)
    size = np.concatenate((abs(a * cos) + abs(b * sin), abs(b * cos) + abs(a * sin)), axis=-1)
    allowed = 4 * ROUNDING[dtype_of(payload["args"][0])] * size + TINY
    return Truth(numbers, allowed, ("token", "head", "number"))


def attention_oracle(payload: Any) -> Truth:
    query, key, value, scale = payload["args"]
    return attention_truth(query, exact(key), exact(value), scale)


def paged_oracle(payload: Any) -> Truth:
    """Gather slot by slot, then attend."""
    query, k_blocks, v_blocks, table, seq_len, scale = payload["args"]
    keys, values = exact(k_blocks), exact(v_blocks)
    size = keys.shape[1]
    places = [(table[p // size], p % size) for p in range(seq_len)]
    key = np.stack([keys[place] for place in places])
    value = np.stack([values[place] for place in places])
    return attention_truth(query, key, value, scale)


def attention_truth(query: Any, key: Any, value: Any, scale: float) -> Truth:
    """Attention of the last n of L positions, one query at a time.

    Allowed, per number: a score is off by the error of a float32 sum of head_dim products of
    rounded queries, and by two roundings of its own; a weight by twice the largest error of a score
    and four roundings; the result by that share of the weighted sizes of the values.
    """
    rounding = ROUNDING[dtype_of(query)]
    q = exact(query)
    n, heads, width = q.shape
    length, kv_heads, _ = key.shape
    numbers, allowed = np.empty_like(q), np.empty_like(q)
    for i in range(n):
        seen = length - n + i + 1
        for head in range(heads):
            k, v = key[:seen, head * kv_heads // heads], value[:seen, head * kv_heads // heads]
            scores = scale * (k @ q[i, head])
            sizes = abs(scale) * (abs(k) @ abs(q[i, head]))
            weights = np.exp(scores - scores.max())
            weights /= weights.sum()
            numbers[i, head] = weights @ v
            score = sizes.max() * (width * SUMS + rounding) + 2 * rounding * abs(scores).max()
            off = 2 * score + seen * SUMS + 4 * rounding
            allowed[i, head] = min(off, 1.0) * (weights @ abs(v)) + TINY
    return Truth(numbers, allowed, ("query", "head", "number"))


def compare_with(oracle: Oracle) -> Callable[[Case, Any, Any], Difference | None]:
    """A compare function for `judge.tensor_calls:call`, against an oracle."""

    def compare_one(case: Case, expected: Any, got: Any) -> Difference | None:
        return against(case, expected, got, oracle)

    return compare_one


def against(case: Case, expected: Any, got: Any, oracle: Oracle) -> Difference | None:
    """One answer: the exception or tensor that the contract promises, and no argument changed."""
    wanted, value = expected["value"], got["value"]
    if not isinstance(wanted, Array) or not isinstance(value, Array):
        if compare.same(wanted, value):
            return None
        return compare.error_or_wrong(wanted, value, (case.label,))
    lines = form_lines(wanted, value)
    if not lines:
        lines = number_lines(oracle(case.payload), value.numpy())
    if lines:
        return Difference((case.label, *lines))
    if got.get("changed"):
        return Difference((case.label, *changed_lines(got["changed"])))
    return None


def changed_lines(changed: Any) -> tuple[str, ...]:
    names = " and ".join(str(name) for name in changed)
    return (
        f"the result is right, but the call changed its argument {names}",
        "the caller still needs it (in the engine, it may be the cache): compute into new tensors",
    )


def form_lines(wanted: Array, got: Array) -> list[str]:
    """What is wrong with kind, shape, dtype and device, each in a sentence of its own."""
    lines = []
    if got.kind != wanted.kind:
        lines.append(f"expected a {wanted.kind} tensor, got one of {got.kind}")
    if got.shape != wanted.shape:
        lines.append(f"the shape is {list(got.shape)}, expected {list(wanted.shape)}")
    if got.dtype != wanted.dtype:
        lines.append(f"the dtype is {got.dtype}, expected {wanted.dtype}")
    if got.device != wanted.device:
        lines.append(f"it is on {got.device}, expected {wanted.device}")
    return lines


def number_lines(truth: Truth, have: Any) -> list[str]:
    """Which numbers are wrong, how far, and where; empty if none is."""
    have = have.astype(np.float64)
    error = abs(have - truth.numbers)
    wrong = ~(error <= truth.allowed)  # NaN is wrong too
    if not wrong.any():
        return []
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    place = ", ".join(f"{axis} {i}" for axis, i in zip(truth.axes, index, strict=True))
    lines = [
        f"first wrong at {list(index)} ({place}): expected {truth.numbers[index]:.6g}, got "
        f"{have[index]:.6g}"
    ]
    if wrong.size <= SHOWN_WHOLE:
        lines.append(f"expected {_list(truth.numbers)}, got {_list(have)}")
    else:
        where = _where(wrong, truth.axes)
        lines.append(f"{int(wrong.sum())} of {wrong.size} numbers are wrong{where}")
    bad = int((~np.isfinite(have)).sum())
    if bad:
        lines.append(f"{bad} of them are NaN or infinite")
    if np.isfinite(error[wrong]).any():  # if all that is wrong is NaN, no error has a size
        largest = float(error[np.isfinite(error)].max())
        allowed = float(truth.allowed[index])
        limit = "expected exactly" if allowed <= TINY else f"allowed {allowed:.2g}"
        lines.append(f"largest absolute error {largest:.3g}, {limit}")
    return lines


def _list(numbers: Any) -> str:
    """All numbers of a small tensor, as a nested list."""
    return str(np.vectorize(lambda x: float(f"{x:.4g}"), otypes=[float])(numbers).tolist())


def _where(wrong: Any, axes: Sequence[str]) -> str:
    """Queries 1-2 of 5, all heads: one piece per dimension of more than one."""
    pieces, counted = [], ""
    for axis, name in enumerate(axes):
        others = tuple(i for i in range(wrong.ndim) if i != axis)
        touched = np.flatnonzero(wrong.any(axis=others))
        total = wrong.shape[axis]
        if len(touched) < total:
            plural = _plural(name) if len(touched) > 1 else name
            pieces.append(f"{plural} {span(touched.tolist())} of {total}")
            counted = " (counted from 0)"
        elif total > 1:
            pieces.append(f"all {total} {_plural(name)}")
    return f": {'; '.join(pieces)}{counted}" if pieces else ""


def _plural(name: str) -> str:
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"


def span(numbers: Sequence[int]) -> str:
    """0, 1, 2, 5 as "0-2, 5"; at most four pieces."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    pieces = [str(a) if a == b else f"{a}-{b}" for a, b in runs[:4]]
    return ", ".join(pieces) + (" ..." if len(runs) > 4 else "")
