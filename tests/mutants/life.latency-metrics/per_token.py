# mistake: TPOT divides by tokens, not by gaps
"""n in the place of n - 1."""

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
    gaps = reference["inter_token_latencies"](token_times)
    return sum(gaps) / len(token_times) if gaps else None
