"""Owns the latency numbers that serving is judged by: TTFT, TPOT, ITL, percentiles, goodput.

All times are seconds on one clock. The names are those of the field (vLLM's `benchmarks/serve`,
DistServe for goodput); the definitions are spelled out, because tools differ in them. No torch, no
numpy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def time_to_first_token(arrival: float, token_times: Sequence[float]) -> float:
    """TTFT: from the arrival of a request to its first token, time in the queue included.

    Raises ValueError without tokens, for times that decrease and for a token before the arrival.
    """
    _check_times(token_times)
    if not token_times:
        raise ValueError("a request without tokens has no time to first token")
    if token_times[0] < arrival:
        raise ValueError(f"the first token, at {token_times[0]}, precedes the arrival at {arrival}")
    return token_times[0] - arrival


def inter_token_latencies(token_times: Sequence[float]) -> list[float]:
    """ITL: the gap before every token but the first, so one number less than there are tokens.

    Empty for no token and for one. Raises ValueError for times that decrease.
    """
    _check_times(token_times)
    return [token_times[i] - token_times[i - 1] for i in range(1, len(token_times))]


def time_per_output_token(token_times: Sequence[float]) -> float | None:
    """TPOT: the mean gap, (last - first) / (tokens - 1). The first token counts as TTFT only.

    None for a request of fewer than two tokens: it has no gap. Raises ValueError for times that
    decrease.
    """
    _check_times(token_times)
    if len(token_times) < 2:
        return None
    return (token_times[-1] - token_times[0]) / (len(token_times) - 1)


def percentile(values: Iterable[float], q: float) -> float:
    """The value that q percent do not exceed, with linear interpolation (numpy's default).

    Of n sorted values it stands at position q / 100 * (n - 1), counted from 0. Raises ValueError
    for no values and for q outside 0 to 100.
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("a percentile needs at least one value")
    if not 0 <= q <= 100:
        raise ValueError(f"q is a percentage, 0 to 100, got {q}")
    position = q / 100 * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def goodput(
    requests: Iterable[tuple[float, Sequence[float]]],
    duration: float,
    *,
    max_ttft: float,
    max_tpot: float,
) -> float:
    """Requests per second that keep both limits; each request is (arrival, token times).

    A limit is kept if the number is not above it. A request without tokens is not good; one with a
    single token has no TPOT that could be too long. `duration` is the length of the measurement in
    seconds. Raises ValueError unless it is above 0.
    """
    if not duration > 0:
        raise ValueError(f"the duration must be above 0 seconds, got {duration}")
    good = 0
    for arrival, token_times in requests:
        if not token_times:
            continue
        tpot = time_per_output_token(token_times)
        fast_start = time_to_first_token(arrival, token_times) <= max_ttft
        good += fast_start and (tpot is None or tpot <= max_tpot)
    return good / duration


def _check_times(token_times: Sequence[float]) -> None:
    for i in range(1, len(token_times)):
        if token_times[i] < token_times[i - 1]:
            raise ValueError(
                f"times must not decrease: {token_times[i - 1]}, then {token_times[i]} (token {i})"
            )
