"""Owns the curves of a load sweep as a page: what `benchmarks.serve --json` wrote, drawn.

Charts are those of `mini_engine.show`, so nothing is needed to draw them, and nothing but a browser
to see them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mini_engine.show.charts import line_chart
from mini_engine.show.markup import Figure, escape, table

LOADS = {"closed": "clients", "open": "requests due per second"}


def curves(sweep: dict[str, Any]) -> list[Figure]:
    """Throughput, then TTFT and TPOT against the load; of points that measured them.

    Raises ValueError for a sweep of less than two points.
    """
    points = sorted(sweep["points"], key=lambda point: float(point["load"]))
    if len(points) < 2:
        raise ValueError(f"a curve needs 2 points or more, got {len(points)}; give more loads")
    loads, axis = [point["load"] for point in points], LOADS[sweep["mode"]]
    speeds = [point["throughput"]["output_tokens_per_s"] for point in points]
    knee = "" if sweep["knee"] is None else f"; the knee is at {sweep['knee']:g}"
    found = [
        line_chart(
            loads, {"output tokens": speeds}, x=axis, y="tokens per second",
            sentence=f"Throughput from {speeds[0]:.0f} tokens/s at a load of {loads[0]:g} to "
            f"{speeds[-1]:.0f} at {loads[-1]:g} ({axis}){knee}.",
        )
    ]  # fmt: skip
    for name in ("ttft", "tpot"):
        measured = [point for point in points if point[f"{name}_s"] is not None]
        if len(measured) >= 2:
            found.append(_latency(name, measured, axis))
    return found


def _latency(name: str, points: Sequence[dict[str, Any]], axis: str) -> Figure:
    loads = [point["load"] for point in points]
    series = {q: [point[f"{name}_s"][q] * 1000 for point in points] for q in ("p50", "p90", "p99")}
    return line_chart(
        loads, series, x=axis, y=f"{name.upper()} in milliseconds",
        sentence=f"{name.upper()} from {series['p50'][0]:.0f} ms (median) at a load of "
        f"{loads[0]:g} to {series['p50'][-1]:.0f} at {loads[-1]:g} ({axis}).",
    )  # fmt: skip


def rows(sweep: dict[str, Any]) -> list[dict[str, object]]:
    """The numbers behind the curves, one row for each point."""
    found: list[dict[str, object]] = []
    for point in sweep["points"]:
        row: dict[str, object] = {
            LOADS[sweep["mode"]]: point["load"],
            "failed": sum(point["requests"]["failed"].values()),
            "tokens/s": point["throughput"]["output_tokens_per_s"],
            "goodput, requests/s": point["goodput_per_s"],
        }
        for name in ("ttft", "tpot"):
            for q in ("p50", "p99"):
                values = point[f"{name}_s"]
                row[f"{name.upper()} {q}, ms"] = "none" if values is None else values[q] * 1000
        found.append(row)
    return found


def page(result: dict[str, Any]) -> str:
    """An HTML page of a whole result: curves of every sweep of two points or more, and tables."""
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>Load test</title>",
        f"<h1>Load test of {escape(result['server']['model'])}</h1>",
        f"<p>{escape(result['date'])}, {escape(result['machine'])}</p>",
        f"<p><code>{escape(result['command'])}</code></p>",
    ]
    for sweep in result["sweeps"]:
        parts.append(f"<h2>{escape(sweep['mode'].capitalize())} loop</h2>")
        if len(sweep["points"]) >= 2:
            parts += [figure.html for figure in curves(sweep)]
        parts.append(table(rows(sweep), "The numbers behind the curves.").html)
    return "\n".join(parts) + "\n"
