# mistake: none
"""One token is a division by zero."""

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


def time_per_output_token(token_times):
    return sum(reference["inter_token_latencies"](token_times)) / (len(token_times) - 1)
