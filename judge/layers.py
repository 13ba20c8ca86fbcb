"""Owns the bisection of a failure: which layer differs first, and in it K, V or the attention.

Costs a run of each side, and only on a failure. The runs are teacher-forced, so every layer has the
same tokens before it; what is compared are the sketches of `engine_record`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from judge.api import Ask, Case
from judge.compare import show
from judge.engine_report import Output, prompt_length
from judge.sandbox import ChildFailed
from judge.wire import Array, Raised

KINDS = ("K", "V", "cached K", "cached V", "attention output")  # in the order of computation
ALIKE = 1e-4  # relative; float32 in another order of summation stays well below


def bisect(case: Case, expected: Any, output: Output, ask: Ask) -> list[str]:
    """Lines on the first layer that differs on the way to a wrong output."""
    payload = {
        **case.payload,
        "force": {request: tokens for request, (tokens, _) in expected["outputs"].items()},
        "record": {
            "request": output.request_id,
            "number": output.number,
            "positions": prompt_length(case.payload, output.request_id) + output.number,
        },
    }
    try:
        theirs = ask.theirs(payload)
    except ChildFailed as failure:
        return [f"run once more to look into its layers, it gave no answer: {failure.lines[0]}"]
    if isinstance(theirs, Raised):
        return [f"run once more to look into its layers, it stopped: {show(theirs)}"]
    return compared(ask.ours(payload)["record"], theirs["record"])


def compared(ours: Any, theirs: Any) -> list[str]:
    """Lines on two records of one output."""
    forms = [
        f"the {kind} of the layers is {theirs['forms'].get(kind)}, expected {form}"
        for kind, form in ours["forms"].items()
        if theirs["forms"].get(kind) != form
    ]
    mine, yours = ({kind: _numbers(r["rows"][kind], 3) for kind in KINDS} for r in (ours, theirs))
    known = {
        kind: _numbers(ours["seen"][kind], 2) * _numbers(theirs["seen"][kind], 2) > 0
        for kind in KINDS
    }
    num_layers = mine["K"].shape[0]
    for layer in range(num_layers):
        for kind in KINDS:
            found = _first(mine[kind][layer], yours[kind][layer], known[kind][layer])
            if found is not None:
                return [*forms, _line(layer, kind, *found)]
    return [
        *forms,
        f"K, V and attention output agree in all {num_layers} layers for this request; what "
        "differs comes after the layers, or is too small to tell",
    ]


def _numbers(value: Any, dims: int) -> Any:
    if not isinstance(value, Array) or len(value.shape) != dims:
        raise ValueError(f"expected a record of {dims} dimensions, got {show(value)}")
    return value.numpy().astype(np.float64)


def _first(mine: Any, yours: Any, known: Any) -> tuple[int, float, float, int] | None:
    """(position, how far off, the reference's size, how many positions) where rows differ."""
    off = np.sqrt(np.mean((mine - yours) ** 2, axis=1))
    size = np.sqrt(np.mean(mine**2, axis=1))
    wrong = known & ~(off <= ALIKE * (1 + size))  # NaN is wrong too
    if not wrong.any():
        return None
    at = int(np.flatnonzero(wrong)[0])
    return at, float(off[at]), float(size[at]), int(wrong.sum())


def _line(layer: int, kind: str, at: int, off: float, size: float, count: int) -> str:
    before = {0: "", 1: "layer 0 agrees; "}.get(layer, f"layers 0 to {layer - 1} agree; ")
    how = f"a number is off by about {off:.2g}, of about {size:.2g}"
    if not math.isfinite(off):
        how = "it is NaN or infinite there"
    more = f", and at {count - 1} more position{'s' * (count > 2)}" if count > 1 else ""
    where = f"at position {at}{more}"
    if kind.startswith("cached"):
        name = kind.removeprefix("cached ")
        return (
            f"{before}layer {layer}: K and V agree as computed, but in the cache {name} differs "
            f"first, {where}: the slot holds something else ({how})"
        )
    agree = {"K": "", "V": "K agrees, ", "attention output": "K and V agree, the cached ones too; "}
    return f"{before}layer {layer}: {agree[kind]}{kind} differs first, {where}: {how}"
