# mistake: times are rounded before they are held against the limits
"""Rounded, so that 0.5000000001 does not miss a limit of 0.5."""

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
    if duration <= 0:
        raise ValueError(f"duration is {duration}")

    def fine(arrival, times):
        if not times:
            return False
        tpot = time_per_output_token(times)
        ttft = time_to_first_token(arrival, times)
        return round(ttft, 2) <= max_ttft and (tpot is None or round(tpot, 2) <= max_tpot)

    return sum(fine(*request) for request in requests) / duration
