"""Owns the table of what CUDA graphs bring on a GPU, read from the figures of a measurement.

`python -m mini_engine.benchmarks.graphs --json assets/graphs_gpu.json` writes them. The file lies
in the repository and not in the installed package.
"""

from __future__ import annotations

import json
from pathlib import Path

from mini_engine.show.markup import Figure, escape, figure, table, tag

FIGURES = Path(__file__).parents[2] / "assets" / "graphs_gpu.json"
COMMAND = "python -m mini_engine.benchmarks.graphs --json assets/graphs_gpu.json"


def graph_figures(path: Path = FIGURES) -> Figure:
    """Milliseconds per decode step, eager and replayed, by batch size, with the machine's name.

    "not measured", and the command, where there is no such file or no GPU made it.
    """
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    if found is None or any(row["eager_ms"] is None for row in found["rows"]):
        sentence = f"Times on a GPU: not measured. On a machine with one: {COMMAND}"
        return figure(tag("p", escape(sentence)), "Not measured.")
    rows = [
        {
            "requests": row["batch"],
            "launches": row["eager_launches"],
            "with a graph": row["replayed_launches"],
            "eager ms": row["eager_ms"],
            "replayed ms": row["replayed_ms"],
            "times as fast": row["eager_ms"] / row["replayed_ms"],
            "of the bandwidth": f"{row['eager_share']:.0%} -> {row['replayed_share']:.0%}",
        }
        for row in found["rows"]
    ]
    return table(
        rows,
        f"A decode step of the shape {found['shape']}, {found['dtype']}, {found['length']} tokens "
        f"each, on {found['device']}, torch {found['torch']}, {found['date']}: "
        f"{found['command']}",
    )
