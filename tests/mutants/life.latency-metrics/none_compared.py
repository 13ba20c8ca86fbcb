# mistake: none
"""None is compared with a number."""

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
    good = [
        request
        for request in requests
        if time_to_first_token(*request) <= max_ttft
        and time_per_output_token(request[1]) <= max_tpot
    ]
    return len(good) / duration
