"""Owns the proof that a report's numbers follow from what happened to its requests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_engine.benchmarks.serve_client import Sent
from mini_engine.benchmarks.serve_load import LoadResult
from mini_engine.benchmarks.serve_plot import curves, page, rows
from mini_engine.benchmarks.serve_report import (
    Slo,
    describe_point,
    describe_sweep,
    knee,
    make_point,
    spread,
)

SLO = Slo(ttft_ms=1000, tpot_ms=200)


def sent(due: float, *chunks: float, failure: str | None = None, late: float = 0.0) -> Sent:
    end = chunks[-1] if chunks else due + 1
    return Sent(due, due + late, end, list(chunks), 10, len(chunks), failure)


def point_of(*requests: Sent) -> dict[str, Any]:
    return make_point(LoadResult(list(requests), [0.001]), SLO, mode="closed", load=2)


@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=60))
def test_percentiles_are_numpys(values: list[float]) -> None:
    found = spread(values)
    assert found is not None
    assert found["mean"] == pytest.approx(np.mean(values), abs=1e-6)
    for q in (50, 90, 99):
        assert found[f"p{q}"] == pytest.approx(np.percentile(values, q), abs=1e-6)


def test_a_point_by_hand() -> None:
    point = point_of(
        sent(0.0, 0.5, 0.6, 0.8),  # TPOT 0.15: good
        sent(1.0, 2.5, 2.6),  # first token after 1.5 s: late
        sent(2.0, 2.5, 3.5),  # TPOT 1 s: slow
        sent(3.0, 3.25, failure="dropped"),
        sent(3.0, failure="rate_limited"),
    )
    assert point["duration_s"] == 4.0
    assert point["requests"]["completed"] == 3
    failed = {kind: n for kind, n in point["requests"]["failed"].items() if n}
    assert failed == {"dropped": 1, "rate_limited": 1}
    assert point["tokens"] == {"prompt": 30, "output": 7}
    assert point["throughput"]["requests_per_s"] == 0.75
    assert point["throughput"]["output_tokens_per_s"] == 1.75
    assert point["throughput"]["total_tokens_per_s"] == 9.25
    assert (point["goodput_per_s"], point["slo_attainment"]) == (0.25, 0.2)
    assert point["ttft_s"]["p50"] == 0.5
    assert point["tpot_s"]["p50"] == pytest.approx(0.15)
    assert point["itl_s"]["mean"] == pytest.approx((0.1 + 0.2 + 0.1 + 1.0) / 4)
    assert point["e2e_s"]["p50"] == 1.5


def test_a_point_where_everything_failed() -> None:
    point = point_of(sent(0.0, failure="timeout"), sent(1.0, failure="timeout"))
    assert (point["ttft_s"], point["e2e_s"], point["goodput_per_s"]) == (None, None, 0)
    assert "failed: 2 timeout" in describe_point(point, SLO)
    assert "none" in describe_sweep([point])


def test_an_answer_without_tokens_is_complete_and_not_good() -> None:
    point = point_of(sent(0.0))
    assert point["requests"]["completed"] == 1
    assert (point["ttft_s"], point["slo_attainment"]) == (None, 0)


def fixed(mode: str, load: float, speed: float, attained: float) -> dict[str, Any]:
    point = point_of(sent(0.0, 0.5, 0.6))
    point |= {"mode": mode, "load": load, "slo_attainment": attained}
    point["throughput"]["output_tokens_per_s"] = speed
    return point


def test_the_knee_of_a_closed_loop_is_where_more_clients_bring_little() -> None:
    speeds = {1: 10.0, 2: 19.0, 4: 33.0, 8: 36.0, 16: 36.5}
    points = [fixed("closed", load, speed, 1.0) for load, speed in speeds.items()]
    assert knee(points) == knee(points[::-1]) == 4  # 33 is nine tenths of 36.5
    assert knee(points[:1]) is None


def test_the_knee_of_an_open_loop_is_the_last_rate_that_keeps_the_limits() -> None:
    shares = {0.5: 1.0, 1.0: 0.95, 2.0: 0.4, 3.0: 0.92}
    points = [fixed("open", load, 1.0, share) for load, share in shares.items()]
    assert knee(points) == 1.0
    assert knee(points[2:]) is None


def test_the_curves_show_what_was_measured() -> None:
    points = [fixed("closed", load, 10.0 * load, 1.0) for load in (1, 2, 4)]
    sweep = {"mode": "closed", "knee": 4, "points": points}
    figures = curves(sweep)
    assert figures[0].sentence == (
        "Throughput from 10 tokens/s at a load of 1 to 40 at 4 (clients); the knee is at 4."
    )
    assert [figure.sentence[:4] for figure in figures[1:]] == ["TTFT", "TPOT"]
    assert [row["tokens/s"] for row in rows(sweep)] == [10.0, 20.0, 40.0]
    with pytest.raises(ValueError, match="needs 2 points or more, got 1"):
        curves({**sweep, "points": points[:1]})
    result = {"server": {"model": "<m>"}, "date": "", "machine": "", "command": "c"}
    text = page({**result, "sweeps": [{**sweep, "points": points[:1]}]})
    assert "&lt;m&gt;" in text
    assert "<img" not in text
