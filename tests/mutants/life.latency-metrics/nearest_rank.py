# mistake: none
"""The nearest-rank percentile of other textbooks."""

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


import math


def percentile(values, q):
    values = sorted(values)
    if not values or not 0 <= q <= 100:
        raise ValueError(q)
    return values[max(0, math.ceil(q / 100 * len(values)) - 1)]
