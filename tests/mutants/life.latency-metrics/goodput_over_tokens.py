# mistake: TPOT inside goodput divides by tokens, not by gaps
"""TPOT computed once more inside goodput, and in another way."""

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
        raise ValueError(duration)
    good = 0
    for arrival, times in requests:
        if times and times[0] - arrival <= max_ttft:
            good += (times[-1] - times[0]) / len(times) <= max_tpot
    return good / duration
