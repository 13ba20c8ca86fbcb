"""Owns what filters keep, in float64, and cases that no rounding decides. No torch."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

CLEAR = 1e-3  # how far a share or a logit must lie from where it would change sides
T = TypeVar("T")
OFF = {"temperature": 1.0, "min_p": 0.0, "top_k": 0, "top_p": 1.0}


@dataclass(frozen=True)
class Row:
    """What is true of one row. `order` are the token ids, best first; `shares` theirs, of the
    distribution after the temperature; `kept` is per token id, and `clear` says that no border is
    closer than CLEAR.
    """

    scaled: Any
    order: Any
    shares: Any
    kept: Any
    clear: bool


def filtered(logits: Any, numbers: dict[str, float]) -> Row:
    """One row of logits [vocab_size] and its four numbers, as in SamplingParams."""
    scaled = logits.astype(np.float64) - logits.max()
    scaled = scaled / np.float64(np.float32(numbers["temperature"]))
    order = np.argsort(-scaled, kind="stable")
    weights = np.exp(scaled[order])
    shares = weights / weights.sum()
    least = numbers["min_p"] * shares[0]
    count = int((shares >= least).sum())
    clear = _apart(shares, least) if numbers["min_p"] else True
    top_k = int(numbers["top_k"])
    if 0 < top_k < count:
        clear &= scaled[order[top_k - 1]] - scaled[order[top_k]] > CLEAR
        count = top_k
    if numbers["top_p"] < 1:
        sums = np.cumsum(shares[:count]) / shares[:count].sum()
        clear &= bool((abs(sums - numbers["top_p"]) > CLEAR * numbers["top_p"]).all())
        count = int((sums < numbers["top_p"]).sum()) + 1
    kept = np.zeros(len(order), dtype=bool)
    kept[order[:count]] = True
    kept &= np.isfinite(scaled)
    return Row(scaled, order, shares, kept, bool(clear))


def _apart(shares: Any, border: float) -> bool:
    return bool((abs(shares - border) > CLEAR * border).all())


def clear_row(rng: random.Random, size: int, spread: float, numbers: dict[str, float]) -> Any:
    """Random logits, float32 [size], for which the float64 answer has no close border.

    Raises RuntimeError if none are found: many tokens with a border at small shares have none.
    """
    logits = _clear_logits(rng, size, spread, numbers, 200)
    if logits is None:
        raise RuntimeError(f"no clear logits in 200 tries for {numbers}")
    return logits


def clear_pair(
    rng: random.Random, size: int, spread: float, draw: Callable[[random.Random], T],
    numbers: Callable[[T], dict[str, float]],
) -> tuple[T, Any]:  # fmt: skip
    """Something random with such logits. What has no clear ones is drawn anew: so `draw` must
    often enough give numbers that are off.
    """
    while True:
        drawn = draw(rng)
        logits = _clear_logits(rng, size, spread, numbers(drawn), 20)
        if logits is not None:
            return drawn, logits


def _clear_logits(
    rng: random.Random, size: int, spread: float, numbers: dict[str, float], tries: int
) -> Any:
    for _ in range(tries):
        source = np.random.default_rng(rng.getrandbits(32))
        logits = (source.standard_normal(size) * spread).astype(np.float32)
        if filtered(logits, numbers).clear:
            return logits
    return None
