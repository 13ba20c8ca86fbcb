# mistake: TTFT of the last token
"""Takes the last token for the first."""

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
    return token_times[-1] - arrival
