"""Owns the cases of attention, for contiguous and for paged keys and values alike."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from judge.api import Case

Numbers = dict[str, Any]  # query, key, value, scale
Make = Callable[..., Case]  # (label, numbers, **payload) -> Case


def draw(
    rng: random.Random,
    n: int,
    length: int,
    heads: int = 1,
    kv_heads: int = 1,
    width: int = 8,
    scale: float | None = None,
    size: float = 1.0,
) -> Numbers:
    """Random numbers; `size` multiplies queries and keys, so scores grow with its square."""
    source = np.random.default_rng(rng.getrandbits(32))

    def normal(*shape: int) -> Any:
        return source.standard_normal(shape).astype(np.float32)

    return {
        "query": normal(n, heads, width) * np.float32(size),
        "key": normal(length, kv_heads, width) * np.float32(size),
        "value": normal(length, kv_heads, width),
        "scale": width**-0.5 if scale is None else scale,
    }


def averages(rng: random.Random, make: Make) -> list[Case]:
    """A query of zeros weighs all it sees alike: the result is the mean of the visible values."""
    cases = []
    for n, length in ((1, 1), (1, 3), (3, 3), (2, 4)):
        numbers = draw(rng, n, length, width=2)
        numbers["query"] = np.zeros((n, 1, 2), dtype=np.float32)
        numbers["value"] = np.arange(2 * length, dtype=np.float32).reshape(length, 1, 2)
        label = "a query of zeros: the mean of the values that it sees"
        if n > 1:
            label = "queries of zeros: each gives the mean of the values that it sees"
        cases.append(make(label, numbers))
    return cases


def decodes(rng: random.Random, make: Make) -> list[Case]:
    lengths = (1, 2, rng.randint(3, 30), rng.randint(31, 60))
    return [make("one new token", draw(rng, 1, length, 2, 2)) for length in lengths]


def prompts(rng: random.Random, make: Make) -> list[Case]:
    return [make("a whole prompt", draw(rng, n, n, 2, 2)) for n in (2, 3, rng.randint(4, 20))]


def appends(rng: random.Random, make: Make) -> list[Case]:
    """Several new tokens behind kept ones: a chunk of a prompt."""
    cases = []
    for kept in (1, 4, rng.randint(5, 20)):
        n = rng.randint(2, 7)
        cases.append(make(f"{n} new tokens behind {kept} kept", draw(rng, n, kept + n, 2, 2)))
    return cases


def shared_heads(rng: random.Random, make: Make) -> list[Case]:
    """Grouped queries, with numbers of heads that tell one way of sharing from another."""
    cases = []
    for heads, kv_heads in ((4, 2), (6, 3), (6, 2), (3, 1), (9, 3), (8, 4)):
        n, kept = rng.choice([(1, rng.randint(1, 9)), (rng.randint(2, 5), rng.randint(0, 6))])
        label = f"{heads} query heads share {kv_heads} KV heads"
        cases.append(make(label, draw(rng, n, kept + n, heads, kv_heads, 4)))
    return cases


def scales(rng: random.Random, make: Make) -> list[Case]:
    return [
        make(f"scale {scale}", draw(rng, n, n + 3, 2, 1, 16, scale=scale))
        for n, scale in ((1, 1.0), (3, 0.5), (2, 0.03), (1, 0.0))
    ]


def large(rng: random.Random, make: Make) -> list[Case]:
    """Scores of several hundred: exp of one alone overflows float32."""
    return [
        make("scores of several hundred", draw(rng, n, 6, 2, 2, 8, size=20.0)) for n in (1, 3, 6)
    ]


def far_below(rng: random.Random, make: Make) -> list[Case]:
    """All scores lie below -10,000: what is hidden by a large negative number would win."""
    cases = []
    for n, length in ((1, 5), (4, 4), (3, 6)):
        numbers = draw(rng, n, length, 2, 2, scale=1.0, size=10.0)
        numbers["query"] = abs(numbers["query"]) + np.float32(36.0)
        numbers["key"] = -abs(numbers["key"]) - np.float32(36.0)
        cases.append(make("all scores lie below -10,000", numbers))
    return cases


def mixed(rng: random.Random, make: Make, count: int, widths: tuple[int, ...]) -> list[Case]:
    """Any shape."""
    cases = []
    for _ in range(count):
        kv_heads, share, n = rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 6)
        length = n + rng.choice([0, rng.randint(1, 20)])
        numbers = draw(rng, n, length, share * kv_heads, kv_heads, rng.choice(widths))
        cases.append(make(f"{n} new of {length} positions", numbers))
    return cases
