"""Owns what a load test reports: one point per load, tables of points, the knee of a sweep.

The latencies are those of `mini_engine.latency`, counted from the moment a request was due, of
completed requests only; failures are counted apart. A point is plain data:

    mode            "closed" (load: clients) or "open" (load: requests due per second)
    load            a number; arrivals: "poisson", "burst", "even", "trace", or null if closed
    duration_s      from the first moment to the end of the last answer
    requests        {"sent", "completed", "failed": {kind: count}}
    tokens          {"prompt", "output"} of completed requests, as the server counted them
    throughput      {"requests_per_s", "output_tokens_per_s", "total_tokens_per_s"}
    goodput_per_s   completed requests within both limits, per second
    slo_attainment  their share of all that were sent
    ttft_s, tpot_s, itl_s, e2e_s    {"p50", "p90", "p99", "mean"} in seconds, or null without any
    generator       {"send_lag_s", "loop_lag_s"}: the same, how late this program itself was

Throughput divides by the whole duration, the last answers' tail included, in which the server is
not fully loaded: long runs tell more than short ones.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mini_engine.benchmarks.serve_client import FAILURES
from mini_engine.benchmarks.serve_load import LoadResult
from mini_engine.latency import (
    goodput,
    inter_token_latencies,
    percentile,
    time_per_output_token,
    time_to_first_token,
)

PERCENTILES = (50, 90, 99)
LATENCIES = ("ttft", "tpot", "itl", "e2e")
NEAR_BEST, ATTAINED = 0.9, 0.9
LATE_S = 0.02
Point = dict[str, Any]


@dataclass(frozen=True)
class Slo:
    """Limits that a good request keeps, in milliseconds."""

    ttft_ms: float = 1000.0
    tpot_ms: float = 200.0


def make_point(
    result: LoadResult, slo: Slo, *, mode: str, load: float, arrivals: str | None = None
) -> Point:
    """The numbers of one run."""
    good = [one for one in result.sent if one.failure is None]
    failed = Counter(one.failure for one in result.sent if one.failure is not None)
    seconds = result.duration
    prompt = sum(one.prompt_tokens or 0 for one in good)
    output = sum(_output_tokens(one) for one in good)
    spoken = [one for one in good if one.chunk_times]
    per_second = goodput(
        [(one.due, one.token_times) for one in spoken], seconds,
        max_ttft=slo.ttft_ms / 1000, max_tpot=slo.tpot_ms / 1000,
    )  # fmt: skip
    tpots = [time_per_output_token(one.token_times) for one in spoken]
    values = {
        "ttft_s": [time_to_first_token(one.due, one.token_times) for one in spoken],
        "tpot_s": [value for value in tpots if value is not None],
        "itl_s": [gap for one in spoken for gap in inter_token_latencies(one.chunk_times)],
        "e2e_s": [one.ended - one.due for one in good],
    }
    return {
        "mode": mode,
        "load": load,
        "arrivals": arrivals,
        "duration_s": round(seconds, 4),
        "requests": {
            "sent": len(result.sent),
            "completed": len(good),
            "failed": {kind: failed[kind] for kind in FAILURES},
        },
        "tokens": {"prompt": prompt, "output": output},
        "throughput": {
            "requests_per_s": round(len(good) / seconds, 4),
            "output_tokens_per_s": round(output / seconds, 3),
            "total_tokens_per_s": round((prompt + output) / seconds, 3),
        },
        "goodput_per_s": round(per_second, 4),
        "slo_attainment": round(per_second * seconds / len(result.sent), 4),
        **{name: spread(found) for name, found in values.items()},
        "generator": {
            "send_lag_s": spread(result.send_lags), "loop_lag_s": spread(result.loop_lags),
        },
    }  # fmt: skip


def _output_tokens(one: Any) -> int:
    return len(one.chunk_times) if one.output_tokens is None else int(one.output_tokens)


def spread(values: Sequence[float]) -> dict[str, float] | None:
    """Percentiles and mean, in the unit of the values; None without values."""
    if not values:
        return None
    found = {f"p{q}": round(percentile(values, q), 6) for q in PERCENTILES}
    return {**found, "mean": round(statistics.fmean(values), 6)}


def knee(points: Sequence[Point]) -> float | None:
    """The load of a sweep beyond which more load only makes users wait.

    Closed loop: the fewest clients whose output tokens per second reach nine tenths of the best
    point's. Open loop: the highest rate up to which, at every rate below it too, nine of ten
    requests kept the limits; None if the lowest rate is too high already. None for one point.
    """
    ordered = sorted(points, key=lambda point: float(point["load"]))
    if len(ordered) < 2:
        return None
    if ordered[0]["mode"] == "closed":
        speeds = [point["throughput"]["output_tokens_per_s"] for point in ordered]
        best = NEAR_BEST * max(speeds)
        return next(p["load"] for p, speed in zip(ordered, speeds, strict=True) if speed >= best)
    found = None
    for point in ordered:
        if point["slo_attainment"] < ATTAINED:
            break
        found = point["load"]
    return found


def describe_point(point: Point, slo: Slo) -> str:
    """One point as text: counts, speeds, and a table of latencies in milliseconds."""
    counts, speed = point["requests"], point["throughput"]
    failed = {kind: count for kind, count in counts["failed"].items() if count}
    lines = [
        f"{load_of(point)}: {counts['completed']} of {counts['sent']} requests completed in "
        f"{point['duration_s']:.1f} s",
        f"failed: {', '.join(f'{count} {kind}' for kind, count in failed.items()) or 'none'}",
        f"throughput: {speed['requests_per_s']:.2f} requests/s, "
        f"{speed['output_tokens_per_s']:.1f} output tokens/s, "
        f"{speed['total_tokens_per_s']:.1f} tokens/s with prompts",
        f"goodput: {point['goodput_per_s']:.2f} requests/s with TTFT up to {slo.ttft_ms:g} ms and "
        f"TPOT up to {slo.tpot_ms:g} ms ({point['slo_attainment']:.0%} of those sent)",
        f"{'milliseconds':<16}" + "".join(f"{name:>10}" for name in ("p50", "p90", "p99", "mean")),
    ]
    named = [(name.upper(), point[f"{name}_s"]) for name in LATENCIES]
    named += [
        ("sent late by", point["generator"]["send_lag_s"]),
        ("loop late by", point["generator"]["loop_lag_s"]),
    ]
    for name, found in named:
        cells = "".join(f"{value * 1000:10.1f}" for value in found.values()) if found else "  none"
        lines.append(f"{name:<16}{cells}")
    return "\n".join(lines + warnings(point))


def warnings(point: Point) -> list[str]:
    """What makes the numbers of a point doubtful."""
    lags = [found["p99"] for found in point["generator"].values() if found]
    if lags and max(lags) > LATE_S:
        return [
            f"warning: the load generator itself was up to {max(lags) * 1000:.0f} ms late (p99); "
            "give it a processor of its own, or less load"
        ]
    return []


def load_of(point: Point) -> str:
    """The load in words."""
    if point["mode"] == "closed":
        return f"{point['load']:g} clients"
    return f"{point['load']:.3g} requests/s ({point['arrivals']})"


def describe_sweep(points: Sequence[Point]) -> str:
    """A line for each point, the knee marked."""
    best = knee(points)
    head = ("load", "failed", "req/s", "tokens/s", "goodput", "TTFT p50", "p99", "TPOT p50", "p99")
    lines = [f"{head[0]:<26}" + "".join(f"{name:>10}" for name in head[1:])]
    for point in points:
        speed, failed = point["throughput"], sum(point["requests"]["failed"].values())
        cells = [
            str(failed), f"{speed['requests_per_s']:.2f}", f"{speed['output_tokens_per_s']:.1f}",
            f"{point['goodput_per_s']:.2f}",
        ]  # fmt: skip
        for name in ("ttft_s", "tpot_s"):
            found = point[name]
            cells += [f"{found[q] * 1000:.0f} ms" if found else "none" for q in ("p50", "p99")]
        mark = "   knee" if point["load"] == best else ""
        lines.append(f"{load_of(point):<26}" + "".join(f"{cell:>10}" for cell in cells) + mark)
    return "\n".join(lines)
