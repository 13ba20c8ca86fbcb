"""pairwise gaps, fmean, and the inclusive quantile written as a weighted sum."""

import math
from itertools import pairwise
from statistics import fmean


def _gaps(times):
    gaps = [b - a for a, b in pairwise(times)]
    if any(gap < 0 for gap in gaps):
        raise ValueError("time runs backwards")
    return gaps


def time_to_first_token(arrival, token_times):
    _gaps(token_times)
    if len(token_times) == 0:
        raise ValueError("no token came")
    wait = token_times[0] - arrival
    if wait < 0:
        raise ValueError("answered before asked")
    return wait


def inter_token_latencies(token_times):
    return _gaps(token_times)


def time_per_output_token(token_times):
    gaps = _gaps(token_times)
    return fmean(gaps) if gaps else None


def percentile(values, q):
    values = sorted(values)
    if not (values and 0 <= q <= 100):
        raise ValueError("nothing to take a percentile of")
    part, low = math.modf((len(values) - 1) * q / 100)
    low = int(low)
    return values[low] * (1 - part) + values[min(low + 1, len(values) - 1)] * part


def goodput(requests, duration, *, max_ttft, max_tpot):
    if duration <= 0:
        raise ValueError("no time passed")
    served = [(a, t) for a, t in requests if t]
    prompt = [r for r in served if time_to_first_token(*r) <= max_ttft]
    return len([r for r in prompt if (time_per_output_token(r[1]) or 0) <= max_tpot]) / duration
