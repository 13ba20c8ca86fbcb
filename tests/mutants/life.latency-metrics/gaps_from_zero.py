# mistake: the wait for the first token counted as a gap
"""The first token gets a gap too."""

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
    previous, gaps = 0.0, []
    for now in token_times:
        gaps.append(now - previous)
        previous = now
    return gaps
