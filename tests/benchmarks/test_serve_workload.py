"""Owns the proof that workloads repeat and have their sizes and moments; traces are checked."""

from __future__ import annotations

import random
import statistics
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_engine.benchmarks.serve_workload import (
    WORDS,
    Lengths,
    arrivals,
    random_requests,
    read_trace,
)


@given(st.integers(1, 500), st.integers(0, 500), st.integers())
def test_lengths_stay_inside_their_limits(low: int, more: int, seed: int) -> None:
    rng = random.Random(seed)
    assert Lengths.parse(str(low)).draw(rng) == low
    assert low <= Lengths.parse(f"uniform:{low}:{low + more}").draw(rng) <= low + more
    assert 1 <= Lengths.parse(f"lognormal:{low}:2:{low + more}").draw(rng) <= low + more


def test_a_lognormal_has_its_median_and_spread() -> None:
    lengths, rng = Lengths.parse("lognormal:200:0.5"), random.Random(0)
    drawn = sorted(lengths.draw(rng) for _ in range(4001))
    assert drawn[2000] == pytest.approx(200, rel=0.05)
    assert drawn[round(4000 * 0.8413)] == pytest.approx(200 * 2.71828**0.5, rel=0.06)  # one sigma
    assert Lengths.parse("lognormal:200:0").draw(rng) == 200


@pytest.mark.parametrize(
    "text",
    ["", "many", "0", "-3", "1.5", "nan", "uniform:3", "uniform:9:3", "uniform:0:3", "normal:3:4",
     "lognormal:0:1", "lognormal:9:-1", "lognormal:9:1:0", "lognormal:9:inf", "constant:1:2"],
)  # fmt: skip
def test_what_is_no_length_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no length; give 128, uniform:16:256"):
        Lengths.parse(text)


def test_requests_repeat_and_a_longer_list_begins_with_the_shorter() -> None:
    lengths = Lengths.parse("uniform:4:40"), Lengths.parse("lognormal:9:1")
    many = random_requests(*lengths, 20, seed=5)
    assert many == random_requests(*lengths, 20, seed=5)
    assert many[:7] == random_requests(*lengths, 7, seed=5)
    assert many != random_requests(*lengths, 20, seed=6)
    assert all(4 <= len(one.prompt.split()) <= 40 for one in many)
    assert len(set(WORDS)) == len(WORDS)


@pytest.mark.parametrize("kind", ["poisson", "burst", "even"])
def test_arrivals_repeat_and_have_their_rate(kind: str) -> None:
    moments = arrivals(kind, 6000, 5.0, 4, seed=3)
    assert moments == arrivals(kind, 6000, 5.0, 4, seed=3)
    assert moments == sorted(moments)
    assert moments[0] == 0.0
    assert 6000 / moments[-1] == pytest.approx(5.0, rel=0.06)


def test_gaps_of_a_poisson_process_have_a_deviation_like_their_mean() -> None:
    moments = arrivals("poisson", 6000, 8.0, 1, seed=1)
    gaps = [after - before for before, after in pairwise(moments)]
    assert statistics.stdev(gaps) == pytest.approx(statistics.fmean(gaps), rel=0.05)
    # A share of e^-1 of exponential gaps is longer than their mean.
    assert sum(gap > 1 / 8 for gap in gaps) / len(gaps) == pytest.approx(0.3679, abs=0.02)


def test_bursts_come_together_and_even_gaps_are_equal() -> None:
    sizes = Counter(arrivals("burst", 22, 3.0, 5, seed=0))
    assert list(sizes.values()) == [5, 5, 5, 5, 2]
    assert arrivals("even", 4, 2.0, 1, seed=0) == [0.0, 0.5, 1.0, 1.5]


@pytest.mark.parametrize(
    ("kind", "rate", "burst", "message"),
    [("poisson", 0.0, 1, "above 0, got 0"), ("even", float("inf"), 1, "above 0, got inf"),
     ("burst", 1.0, 0, "1 request or more, got 0"), ("sine", 1.0, 1, "got 'sine'")],
)  # fmt: skip
def test_arrivals_that_make_no_sense_are_refused(
    kind: str, rate: float, burst: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        arrivals(kind, 3, rate, burst, seed=0)


def test_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(
        '{"timestamp": 10, "prompt": "h\\u00e9llo", "max_tokens": 2}\n\n'
        '{"timestamp": 10.5, "prompt_tokens": 5, "max_tokens": 3}\n'
    )
    first, second = read_trace(path, seed=1)
    assert (first.prompt, first.max_tokens, first.timestamp) == ("h\u00e9llo", 2, 0.0)
    assert (len(second.prompt.split()), second.max_tokens, second.timestamp) == (5, 3, 0.5)
    assert read_trace(path, seed=1)[1] == second
    assert read_trace(path, seed=2)[1].prompt != second.prompt
    path.write_text('{"prompt": "x", "max_tokens": 2}\n')
    assert read_trace(path, seed=1)[0].timestamp is None


GOOD = '{"timestamp": 1, "prompt": "x", "max_tokens": 1}'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON"),
        ("[]", "expected an object"),
        ('{"timestamp": 2, "prompt": "x"}', "max_tokens must be a whole number"),
        ('{"timestamp": 2, "prompt": "x", "max_tokens": 1.5}', "got 1.5"),
        ('{"timestamp": 2, "prompt": "x", "max_tokens": true}', "got True"),
        ('{"timestamp": 2, "max_tokens": 1}', "either prompt or prompt_tokens"),
        ('{"timestamp": 2, "prompt": "x", "prompt_tokens": 1, "max_tokens": 1}', "either prompt"),
        ('{"timestamp": 2, "prompt": "", "max_tokens": 1}', "not empty, got ''"),
        ('{"timestamp": 2, "prompt": null, "max_tokens": 1}', "got None"),
        ('{"timestamp": 2, "prompt_tokens": 0, "max_tokens": 1}', "prompt_tokens must be"),
        ('{"timestamp": "2", "prompt": "x", "max_tokens": 1}', "number of seconds, got '2'"),
        ('{"timestamp": NaN, "prompt": "x", "max_tokens": 1}', "number of seconds, got nan"),
        ('{"timestamp": 0.5, "prompt": "x", "max_tokens": 1}', "0.5 is before the previous"),
        ('{"prompt": "x", "max_tokens": 1}', "either all lines have a timestamp or none"),
        ('{"time": 2, "prompt": "x", "max_tokens": 1}', "there is no field 'time'"),
    ],
)
def test_a_wrong_line_of_a_trace_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(f"{GOOD}\n\n{line}\n")
    with pytest.raises(ValueError, match=rf"t\.jsonl, line 3: .*{message}"):
        read_trace(path, seed=0)


def test_an_empty_trace_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("\n")
    with pytest.raises(ValueError, match="holds no request"):
        read_trace(path, seed=0)
