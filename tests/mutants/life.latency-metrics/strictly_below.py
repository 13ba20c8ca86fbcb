# mistake: a limit that is met exactly counts as missed
"""< where <= belongs."""

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
        if times and times[0] - arrival < max_ttft:
            gap = time_per_output_token(times)
            good += gap is None or gap < max_tpot
    return good / duration
