# mistake: position q / 100 * n instead of n - 1
"""The position counts from 1 to n."""

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


def percentile(values, q):
    values = sorted(values)
    if not values or not 0 <= q <= 100:
        raise ValueError(q)
    place = len(values) * q / 100
    low = min(int(place), len(values) - 1)
    high = min(low + 1, len(values) - 1)
    return values[low] * (1 - (place - int(place))) + values[high] * (place - int(place))
