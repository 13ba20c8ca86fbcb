# mistake: none
"""TTFT from the first moment at which something happened, not from the arrival."""

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


def time_to_first_token(arrival, token_times):
    reference["time_to_first_token"](arrival, token_times)
    return token_times[0] - min(token_times)
