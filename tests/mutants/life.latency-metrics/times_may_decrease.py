# mistake: none
"""No look at the order of the times."""

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
    return [after - before for before, after in zip(token_times, token_times[1:], strict=False)]
