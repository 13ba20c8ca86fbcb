# mistake: only TTFT is looked at
"""The second limit is forgotten."""

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
    return sum(bool(t) and t[0] - a <= max_ttft for a, t in requests) / duration
