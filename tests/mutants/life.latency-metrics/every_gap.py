# mistake: every gap is held against max_tpot, not their mean
"""Every single gap must be below the limit, not the mean."""

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
    if duration <= 0:
        raise ValueError("no time")
    good = 0
    for arrival, times in requests:
        fast = bool(times) and times[0] - arrival <= max_ttft
        good += fast and all(gap <= max_tpot for gap in inter_token_latencies(times))
    return good / duration
