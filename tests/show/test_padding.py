"""Owns the proof that the picture of padding shows each step's rows, and GPU figures their file."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from mini_engine import show
from mini_engine.benchmarks import graphs
from mini_engine.show import gpu_figures as figures
from tests.show.test_charts import drawing

SIZES, BUCKETS = [1, 3, 3, 8, 5, 2], [2, 4, 8]


def heights(svg: str, kind: str) -> list[float]:
    return [float(h) for h in re.findall(rf'class="{kind}"[^>]*? height="([\d.]+)"', svg)]


def test_each_step_has_its_requests_and_the_padding_up_to_its_bucket() -> None:
    figure = show.padding_map(SIZES, BUCKETS)
    svg = drawing(figure)
    row = heights(svg, "used")[0]
    assert heights(svg, "used") == pytest.approx([n * row for n in SIZES], abs=0.3)
    assert heights(svg, "padding") == pytest.approx([row, row, row, 3 * row], abs=0.3)
    assert "url(#padding)" in svg, "hatched, so that it can be read without colours"
    for word in (">2<", ">4<", ">8<", ">requests<", ">padding<"):
        assert word in svg
    assert "6 decode steps replay 28 rows, of which 6 are padding (21%)" in figure.sentence
    assert figure.sentence in figure.html, "the alt text"
    assert show.padding_rows(SIZES, BUCKETS) == 6
    assert show.padding_rows(SIZES, range(1, 9)) == 0


def test_numbers_of_near_buckets_do_not_lie_over_each_other() -> None:
    svg = drawing(show.padding_map([64], range(1, 65)))
    found = re.findall(r'y="([\d.]+)" text-anchor="end"', svg)
    written = sorted(map(float, found))
    assert len(written) > 5
    assert all(b - a >= 12 for a, b in pairwise(written))


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ValueError, match="a step of 9 requests fits none of the sizes"):
        show.padding_map([9], BUCKETS)
    with pytest.raises(ValueError, match="got none"):
        show.padding_map([], BUCKETS)


def test_no_gpu_figures_are_made_up(tmp_path: Path) -> None:
    assert graphs.COMMAND == figures.COMMAND
    path = tmp_path / "figures.json"
    missing = figures.graph_figures(path)
    assert missing.sentence == "Not measured."
    assert "not measured" in missing.html
    assert figures.COMMAND in missing.html
    row = {"batch": 4, "bucket": 4, "eager_launches": 990, "replayed_launches": 17}
    times = {"eager_ms": 8.0, "replayed_ms": 2.0, "eager_share": 0.1, "replayed_share": 0.4}
    common = {"shape": "s", "dtype": "bfloat16", "length": 256, "device": "A real name",
              "torch": "2", "date": "2026-11-30", "command": figures.COMMAND}  # fmt: skip
    path.write_text(json.dumps({**common, "rows": [row | dict.fromkeys(times)]}))
    assert figures.graph_figures(path).sentence == "Not measured."
    path.write_text(json.dumps({**common, "rows": [row | times]}))
    shown = figures.graph_figures(path)
    assert "A real name" in shown.sentence
    for text in ("990", "17", ">8<", ">2<", ">4<", "10% -&gt; 40%"):
        assert text in shown.html
