# mistake: the last gap is missing
"""range ends one too early."""

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


def inter_token_latencies(token_times):
    reference["inter_token_latencies"](token_times)
    return [token_times[i + 1] - token_times[i] for i in range(len(token_times) - 2)]
