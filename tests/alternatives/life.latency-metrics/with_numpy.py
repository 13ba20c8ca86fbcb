"""numpy does the arithmetic and plain floats come back."""

import numpy as np


def _check(token_times):
    times = np.asarray(token_times, dtype=float)
    if (np.diff(times) < 0).any():
        raise ValueError("not in order")
    return times


def time_to_first_token(arrival, token_times):
    times = _check(token_times)
    if times.size == 0 or times[0] < arrival:
        raise ValueError("no first token, or one before the arrival")
    return float(times[0] - arrival)


def inter_token_latencies(token_times):
    return np.diff(_check(token_times)).tolist()


def time_per_output_token(token_times):
    gaps = np.diff(_check(token_times))
    return float(gaps.mean()) if gaps.size else None


def percentile(values, q):
    numbers = list(values)
    return float(np.percentile(numbers, q)) if numbers else _nothing()


def _nothing():
    raise ValueError("no values")


def goodput(requests, duration, *, max_ttft, max_tpot):
    if duration <= 0:
        raise ValueError("duration")
    good = sum(_good(arrival, times, max_ttft, max_tpot) for arrival, times in requests)
    return good / duration


def _good(arrival, times, max_ttft, max_tpot):
    if not times:
        return False
    tpot = time_per_output_token(times)
    return time_to_first_token(arrival, times) <= max_ttft and (tpot is None or tpot <= max_tpot)
