# mistake: TPOT of one token is 0, not None
"""No gap is taken for a gap of 0."""

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
    return sum(gaps) / max(1, len(gaps)) if gaps else 0.0
