"""Owns the proof that all contenders of the overhead benchmark serve the same tokens."""

from __future__ import annotations

import pytest

from mini_engine.benchmarks import serve_overhead
from mini_engine.benchmarks.serve_light import with_server
from mini_engine.benchmarks.serve_overhead import (
    make_requests,
    measure_first_token,
    measure_throughput,
    ratio,
)
from mini_engine.benchmarks.serve_workload import LoadRequest
from tests.benchmarks.fake_server import FakeServer


def test_requests_are_spread_evenly() -> None:
    lengths = [len(one.prompt.split()) for one in make_requests(16, 4)]
    assert (lengths[0], lengths[-1]) == (serve_overhead.SHORTEST, serve_overhead.LONGEST)
    assert lengths == sorted(lengths)
    (alone,) = make_requests(1, 4)
    assert len(alone.prompt.split()) == serve_overhead.FIRST_PROMPT


def test_a_ratio_is_that_of_the_best_rounds() -> None:
    assert ratio([1.5, 1.0, 9.0], [7.0, 2.0, 2.5]) == 0.5


def test_a_light_client_sees_every_event() -> None:
    with FakeServer() as fake:
        url = fake.base_url.removesuffix("/v1")
        serve = with_server(url)
        start, *times = serve([LoadRequest("hello", 5)])[0]
        assert start <= times[0]
        assert times == sorted(times)
        assert len(times) == 5 + 2  # this server sends the reason and the usage as events, too
        body = fake.bodies[-1]
        assert (body["stream"], body["max_tokens"], body["ignore_eos"]) == (True, 5, True)
    with pytest.raises(OSError, match="onnect"):
        serve([LoadRequest("hello", 5)])


def test_a_failed_request_is_an_error() -> None:
    with FakeServer() as fake:
        serve = with_server(fake.base_url.removesuffix("/v1"))
        fake.refuse_all = True
        with pytest.raises(RuntimeError, match=r"a request failed: b.HTTP/1.1 503"):
            serve([LoadRequest("hello", 5)])


def test_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_overhead, "STREAMS", 2)
    monkeypatch.setattr(serve_overhead, "NEW_TOKENS", 3)

    def contender(speed: float) -> serve_overhead.Contender:
        return lambda requests: [
            [10.0, *(10.0 + (i + 1) / speed for i in range(one.max_tokens))] for one in requests
        ]

    contenders = {"engine": contender(10), "server": contender(8), "one process": contender(4)}
    clock = iter(range(100))
    meters: serve_overhead.Meters = {name: {"all": lambda: next(clock)} for name in contenders}
    found = measure_throughput(contenders, meters, rounds=2)
    assert found["processor_s"] == {name: {"all": 1} for name in contenders}
    assert found["ratio_to_engine"] == {"engine": 1.0, "server": 0.8, "one process": 0.4}
    assert found["one_process_to_server"] == 0.5
    assert found["output_tokens_per_s"]["engine"] == pytest.approx(20)
    first = measure_first_token(contenders, repeats=3)
    assert first["seconds"]["engine"] == pytest.approx(0.1)
    assert first["added_by_http_s"] == {
        "server": pytest.approx(0.025), "one process": pytest.approx(0.15)
    }  # fmt: skip
