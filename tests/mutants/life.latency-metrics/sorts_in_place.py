# mistake: the caller's values are sorted in place
"""The values of the caller change their order."""

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
    if not values or not 0 <= q <= 100:
        raise ValueError(q)
    values.sort()
    place = (len(values) - 1) * q / 100
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)
