"""Owns how a chapter times a piece of work on the reader's machine."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds(
    work: Callable[[], object],
    repeats: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """The shortest of `repeats` runs: the one that other programs disturbed least.

    Raises ValueError for less than one run.
    """
    if repeats < 1:
        raise ValueError(f"repeats must be 1 or more, got {repeats}")
    times = []
    for _ in range(repeats):
        start = clock()
        work()
        times.append(clock() - start)
    return min(times)
