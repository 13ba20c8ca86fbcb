# mistake: a share of the requests instead of requests per second
"""The duration is not used."""

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


def goodput(requests, duration, *, max_ttft, max_tpot):
    requests = list(requests)
    per_second = reference["goodput"](requests, duration, max_ttft=max_ttft, max_tpot=max_tpot)
    return per_second * duration / max(1, len(requests))
