"""The references of chapter 00 agree with numpy and with the engine's own scheduler."""

from __future__ import annotations

import math

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.exercises.life_prefill_chunks import scheduled_chunks
from judge.solutions.life import prefill_chunks
from mini_engine import latency

seconds = st.floats(0, 1e4, allow_nan=False).map(lambda x: round(x, 6))


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 80), st.integers(0, 6), st.integers(1, 20))
def test_chunks_are_those_of_the_scheduler(prompt: int, decodes: int, room: int) -> None:
    assert prefill_chunks(prompt, decodes, decodes + room) == scheduled_chunks(
        prompt, decodes, decodes + room
    )


def test_case_16_of_the_semantics() -> None:
    assert prefill_chunks(10, 2, 6) == [4, 4, 2]
    assert prefill_chunks(10, 2, 12) == [10]


@given(st.lists(seconds, min_size=1, max_size=40), st.floats(0, 100))
def test_percentile_is_numpys_default(values: list[float], q: float) -> None:
    expected = float(numpy.percentile(values, q))
    assert math.isclose(latency.percentile(values, q), expected, rel_tol=1e-9, abs_tol=1e-9)


@given(st.lists(seconds, min_size=2, max_size=20).map(sorted))
def test_tpot_is_the_mean_of_itl(times: list[float]) -> None:
    gaps = latency.inter_token_latencies(times)
    assert len(gaps) == len(times) - 1
    tpot = latency.time_per_output_token(times)
    assert tpot is not None
    assert math.isclose(tpot, sum(gaps) / len(gaps), rel_tol=1e-9, abs_tol=1e-9)


def test_latencies_of_a_request_by_hand() -> None:
    times = [1.5, 1.75, 2.5]
    assert latency.time_to_first_token(1.0, times) == 0.5
    assert latency.inter_token_latencies(times) == [0.25, 0.75]
    assert latency.time_per_output_token(times) == 0.5
    assert latency.time_per_output_token([3.0]) is None
    assert latency.inter_token_latencies([]) == []


def test_goodput_by_hand() -> None:
    requests = [(0.0, [1.0, 1.5]), (0.0, [1.0, 1.6]), (0.0, [1.1, 1.2]), (0.0, [1.0]), (0.0, [])]
    assert latency.goodput(requests, 4.0, max_ttft=1.0, max_tpot=0.5) == 0.5


@pytest.mark.parametrize(
    "call",
    [
        lambda: latency.time_to_first_token(0.0, []),
        lambda: latency.time_to_first_token(2.0, [1.0]),
        lambda: latency.inter_token_latencies([2.0, 1.0]),
        lambda: latency.percentile([], 50),
        lambda: latency.percentile([1.0], 101),
        lambda: latency.percentile([1.0], math.nan),
        lambda: latency.goodput([], 0.0, max_ttft=1, max_tpot=1),
        lambda: latency.goodput([], math.nan, max_ttft=1, max_tpot=1),
    ],
)
def test_what_makes_no_sense_is_refused(call) -> None:
    with pytest.raises(ValueError, match=r"."):
        call()
