# mistake: the median gap is held against max_tpot, not the mean
"""The typical gap counts, long ones are forgiven."""

from mini_engine.latency import (
    goodput,
    inter_token_latencies,
    percentile,
    time_per_output_token,
    time_to_first_token,
)

__all__ = [
    "goodput",
    "inter_token_latencies",
    "percentile",
    "time_per_output_token",
    "time_to_first_token",
]
reference = {name: globals()[name] for name in __all__}


def goodput(requests, duration, *, max_ttft, max_tpot):
    if not duration > 0:
        raise ValueError("duration")
    good = [
        1
        for arrival, times in requests
        if times
        and time_to_first_token(arrival, times) <= max_ttft
        and (len(times) == 1 or percentile(inter_token_latencies(times), 50) <= max_tpot)
    ]
    return len(good) / duration
