"""Owns the known mistakes of `life.latency-metrics`: each is wrong in the one way its name says."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from mini_engine import latency

Requests = Iterable[tuple[float, Sequence[float]]]
Gaps = Callable[[Sequence[float]], bool]


def ttft_without_queue(arrival: float, token_times: Sequence[float]) -> float:
    latency.time_to_first_token(arrival, token_times)
    return 0.0 if len(token_times) < 2 else token_times[1] - token_times[0]


def ttft_of_last(arrival: float, token_times: Sequence[float]) -> float:
    latency.time_to_first_token(arrival, token_times)
    return token_times[-1] - arrival


def itl_from_zero(token_times: Sequence[float]) -> list[float]:
    return [*token_times[:1], *latency.inter_token_latencies(token_times)]


def itl_without_last(token_times: Sequence[float]) -> list[float]:
    return latency.inter_token_latencies(token_times)[:-1]


def tpot_by_tokens(token_times: Sequence[float]) -> float | None:
    if latency.time_per_output_token(token_times) is None:
        return None
    return (token_times[-1] - token_times[0]) / len(token_times)


def tpot_zero(token_times: Sequence[float]) -> float | None:
    return latency.time_per_output_token(token_times) or 0.0


def tpot_median(token_times: Sequence[float]) -> float | None:
    gaps = latency.inter_token_latencies(token_times)
    return latency.percentile(gaps, 50) if gaps else None


def percentile_nearest(values: Iterable[float], q: float) -> float:
    kept = list(values)
    latency.percentile(kept, q)
    return sorted(kept)[round(q / 100 * (len(kept) - 1))]


def percentile_below(values: Iterable[float], q: float) -> float:
    kept = list(values)
    latency.percentile(kept, q)
    return sorted(kept)[math.floor(q / 100 * (len(kept) - 1))]


def percentile_by_n(values: Iterable[float], q: float) -> float:
    kept = list(values)
    latency.percentile(kept, q)
    position = q / 100 * len(kept)
    below = min(math.floor(position), len(kept) - 1)
    above = min(below + 1, len(kept) - 1)
    kept.sort()
    return kept[below] + (kept[above] - kept[below]) * (position - math.floor(position))


def percentile_unsorted(values: Iterable[float], q: float) -> float:
    kept = list(values)
    latency.percentile(kept, q)
    position = q / 100 * (len(kept) - 1)
    below = math.floor(position)
    above = min(below + 1, len(kept) - 1)
    return kept[below] + (kept[above] - kept[below]) * (position - below)


def percentile_in_place(values: list[float], q: float) -> float:
    values.sort()
    return latency.percentile(values, q)


def goodput_strict(
    requests: Requests, duration: float, *, max_ttft: float, max_tpot: float
) -> float:
    below = {"max_ttft": math.nextafter(max_ttft, -1), "max_tpot": math.nextafter(max_tpot, -1)}
    return latency.goodput(requests, duration, **below)


def goodput_needs_two(
    requests: Requests, duration: float, *, max_ttft: float, max_tpot: float
) -> float:
    kept = [request for request in requests if len(request[1]) > 1]
    return latency.goodput(kept, duration, max_ttft=max_ttft, max_tpot=max_tpot)


def goodput_either(
    requests: Requests, duration: float, *, max_ttft: float, max_tpot: float
) -> float:
    kept = list(requests)
    first = latency.goodput(kept, duration, max_ttft=max_ttft, max_tpot=math.inf)
    second = latency.goodput(kept, duration, max_ttft=math.inf, max_tpot=max_tpot)
    both = latency.goodput(kept, duration, max_ttft=max_ttft, max_tpot=max_tpot)
    return first + second - both


def goodput_ttft_only(
    requests: Requests, duration: float, *, max_ttft: float, max_tpot: float
) -> float:
    return latency.goodput(requests, duration, max_ttft=max_ttft, max_tpot=math.inf)


def goodput_share(
    requests: Requests, duration: float, *, max_ttft: float, max_tpot: float
) -> float:
    kept = list(requests)
    good = latency.goodput(kept, duration, max_ttft=max_ttft, max_tpot=max_tpot) * duration
    return good / len(kept) if kept else 0.0


def goodput_empty(
    requests: Requests, duration: float, *, max_ttft: float, max_tpot: float
) -> float:
    kept = [request if request[1] else (request[0], [request[0]]) for request in requests]
    return latency.goodput(kept, duration, max_ttft=max_ttft, max_tpot=max_tpot)


def _goodput(requests: Requests, duration: float, *, max_ttft: float, good_gaps: Gaps) -> float:
    """Good requests per second, TTFT as it should be, the gaps judged by `good_gaps`."""
    latency.goodput([], duration, max_ttft=max_ttft, max_tpot=0.0)  # the same refusals
    good = 0
    for arrival, times in requests:
        if times and latency.time_to_first_token(arrival, times) <= max_ttft:
            gaps = latency.inter_token_latencies(times)
            good += not gaps or good_gaps(gaps)
    return good / duration


def goodput_tpot_by_tokens(
    requests: Requests, duration: float, *, max_ttft: float, max_tpot: float
) -> float:
    def good(gaps: Sequence[float]) -> bool:
        return sum(gaps) / (len(gaps) + 1) <= max_tpot

    return _goodput(requests, duration, max_ttft=max_ttft, good_gaps=good)


def goodput_every_gap(
    requests: Requests, duration: float, *, max_ttft: float, max_tpot: float
) -> float:
    def good(gaps: Sequence[float]) -> bool:
        return max(gaps) <= max_tpot

    return _goodput(requests, duration, max_ttft=max_ttft, good_gaps=good)


def goodput_median_gap(
    requests: Requests, duration: float, *, max_ttft: float, max_tpot: float
) -> float:
    def good(gaps: Sequence[float]) -> bool:
        return latency.percentile(gaps, 50) <= max_tpot

    return _goodput(requests, duration, max_ttft=max_ttft, good_gaps=good)


def goodput_rounded(
    requests: Requests, duration: float, *, max_ttft: float, max_tpot: float
) -> float:
    """To hundredths, as one would print them."""
    latency.goodput([], duration, max_ttft=max_ttft, max_tpot=max_tpot)  # the same refusals
    good = 0
    for arrival, times in requests:
        if times and round(latency.time_to_first_token(arrival, times), 2) <= max_ttft:
            good += round(latency.time_per_output_token(times) or 0.0, 2) <= max_tpot
    return good / duration
