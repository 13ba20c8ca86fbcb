"""Owns the proof that a load is what was asked for, and that every end of a request has a name."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mini_engine.benchmarks import serve
from mini_engine.benchmarks.serve_client import FAILURES, Sent, Target
from mini_engine.benchmarks.serve_load import LoadResult, closed_loop, open_loop
from mini_engine.benchmarks.serve_report import Slo, describe_point, make_point
from mini_engine.benchmarks.serve_workload import LoadRequest
from tests.benchmarks.fake_server import FakeServer
from tests.serve.server import run_async

ASK = LoadRequest("hello there", 4)


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeServer]:
    with FakeServer() as running:
        yield running


def one(fake: FakeServer, how: str, timeout_s: float = 60, **options: Any) -> Sent:
    target = Target(fake.base_url, how, timeout_s=timeout_s, **options)
    (sent,) = run_async(closed_loop(target, [ASK], 1)).sent
    return sent


@pytest.mark.parametrize("chat", [False, True])
def test_a_good_answer(fake: FakeServer, chat: bool) -> None:
    sent = one(fake, "good", chat=chat, api_key="k", extra={"ignore_eos": True})
    assert (sent.failure, sent.detail) == (None, "")
    assert (sent.prompt_tokens, sent.output_tokens) == (7, 4)
    assert sent.token_times == sent.chunk_times == sorted(sent.chunk_times)
    assert len(sent.chunk_times) == 4  # neither the comments nor the chunks without text
    assert sent.due <= sent.sent <= sent.chunk_times[0] <= sent.ended
    body = fake.bodies[-1]
    assert body["messages" if chat else "prompt"]
    assert body["stream"] is body["ignore_eos"] is True
    assert fake.keys[-1] == "Bearer k"


@pytest.mark.parametrize(
    ("how", "failure", "chunks"),
    [
        ("429", "rate_limited", 0),
        ("400", "refused", 0),
        ("500", "server_error", 0),
        ("cut", "dropped", 2),
        ("ends early", "dropped", 2),
        ("malformed", "malformed", 2),
        ("error event", "server_error", 2),
    ],
)
def test_each_failure_has_its_name(fake: FakeServer, how: str, failure: str, chunks: int) -> None:
    sent = one(fake, how)
    assert sent.failure == failure in FAILURES
    assert sent.detail
    assert len(sent.chunk_times) == chunks


def test_a_deadline_ends_a_request(fake: FakeServer) -> None:
    sent = one(fake, "hangs", timeout_s=0.5)
    assert sent.failure == "timeout"
    assert "0.5 s" in sent.detail


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but it does not listen
        target = Target(f"http://127.0.0.1:{taken.getsockname()[1]}/v1", "good")
        (sent,) = run_async(closed_loop(target, [ASK], 1)).sent
    assert sent.failure == "unreachable"


def test_tokens_that_came_without_a_chunk_of_their_own_stand_at_the_last_one(
    fake: FakeServer,
) -> None:
    sent = one(fake, "more tokens")
    assert sent.token_times == sent.chunk_times + sent.chunk_times[-1:] * 3
    sent = one(fake, "no usage")
    assert (sent.output_tokens, sent.prompt_tokens) == (None, None)
    assert sent.token_times == sent.chunk_times


@pytest.mark.parametrize("count", range(6))
def test_token_times_are_as_many_as_the_server_counted(count: int) -> None:
    sent = Sent(0.0, chunk_times=[1.0, 2.0, 4.0], output_tokens=count)
    assert len(sent.token_times) == max(count, 1)
    assert sent.token_times[-1] == 4.0
    assert count < 2 or sent.token_times[0] == 1.0


def test_an_open_loop_waits_for_no_answer() -> None:
    with FakeServer(party=12) as fake:  # it answers nobody before all twelve have come
        target = Target(fake.base_url, "together", timeout_s=60)
        result = run_async(open_loop(target, [ASK] * 12, [i * 0.002 for i in range(12)]))
    assert [sent.failure for sent in result.sent] == [None] * 12
    assert fake.most_open == 12
    gaps = [after.due - before.due for before, after in pairwise(result.sent)]
    assert gaps == pytest.approx([0.002] * 11)


def test_a_closed_loop_has_as_many_requests_under_way_as_clients() -> None:
    with FakeServer(party=3) as fake:
        target = Target(fake.base_url, "together", timeout_s=60)
        result = run_async(closed_loop(target, [ASK] * 10, 3))
        assert len(result.sent) == len(fake.bodies) == 10
        assert fake.most_open == 3
        few = run_async(closed_loop(target, [ASK] * 10, 2, seconds=0.0))
        assert few.sent == []


def test_a_late_generator_is_seen_and_makes_latencies_worse_never_better(
    fake: FakeServer,
) -> None:
    target = Target(fake.base_url, "good")

    async def run() -> LoadResult:
        load = asyncio.create_task(open_loop(target, [ASK] * 3, [0.0, 0.01, 0.02]))
        await asyncio.sleep(0.02)  # the tasks are made, nothing is sent yet
        time.sleep(0.4)  # the event loop is held up on purpose
        return await load

    result = run_async(run())
    assert min(result.send_lags) > 0.2
    point = make_point(result, Slo(), mode="open", load=100, arrivals="even")
    assert point["ttft_s"]["p50"] > 0.2
    assert max(result.loop_lags) > 0.2
    assert "the load generator itself was up to" in describe_point(point, Slo())


def test_no_load_is_refused() -> None:
    target = Target("http://127.0.0.1:1/v1", "good")
    with pytest.raises(ValueError, match="at least one request"):
        run_async(closed_loop(target, [], 1))
    with pytest.raises(ValueError, match="must be 1 or more, got 0"):
        run_async(closed_loop(target, [ASK], 0))
    with pytest.raises(ValueError, match="1 requests but 2 moments"):
        run_async(open_loop(target, [ASK], [0.0, 1.0]))


SMALL = ["--requests", "4", "--output-tokens", "3", "--prompt-tokens", "8", "--warmup", "1"]


def test_a_sweep_of_any_server(
    fake: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, drawn = tmp_path / "load.json", tmp_path / "load.html"
    arguments = ["--base-url", fake.base_url, "--api-key", "secret", *SMALL]
    arguments += ["--concurrency", "1", "2", "--rate", "200", "400", "--arrivals", "burst"]
    assert serve.main([*arguments, "--json", str(kept), "--plot", str(drawn)]) == 0
    told = capsys.readouterr().out
    assert "2 clients: 4 of 4 requests completed" in told
    assert "400 requests/s (burst)" in told
    assert "knee" in told
    result = json.loads(kept.read_text())
    assert (result["version"], result["server"]["model"]) == (1, "good")
    assert "secret" not in kept.read_text()
    assert [(s["mode"], [p["load"] for p in s["points"]]) for s in result["sweeps"]] == [
        ("closed", [1, 2]), ("open", [200, 400]),
    ]  # fmt: skip
    for sweep in result["sweeps"]:
        for point in sweep["points"]:
            assert point["requests"] == {
                "sent": 4, "completed": 4, "failed": dict.fromkeys(FAILURES, 0)
            }  # fmt: skip
            assert point["tokens"] == {"prompt": 28, "output": 12}
    assert drawn.read_text().count("<img") == 6
    prompts = [body["prompt"] for body in fake.bodies[-17:]]
    assert len(set(prompts)) == 17  # no point finds the prompts of another one cached


def test_a_trace_is_replayed(fake: FakeServer, tmp_path: Path) -> None:
    trace, kept = tmp_path / "t.jsonl", tmp_path / "load.json"
    trace.write_text(
        '{"timestamp": 7, "prompt": "one", "max_tokens": 2}\n\n'
        '{"timestamp": 7.01, "prompt_tokens": 5, "max_tokens": 3}\n'
    )
    arguments = ["--base-url", fake.base_url, "--trace", str(trace), "--warmup", "0"]
    assert serve.main([*arguments, "--json", str(kept)]) == 0
    (sweep,) = json.loads(kept.read_text())["sweeps"]
    assert sweep["knee"] is None
    assert sweep["points"][0]["arrivals"] == "trace"
    assert [(b["prompt"].count(" "), b["max_tokens"]) for b in fake.bodies[-2:]] == [(0, 2), (4, 3)]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--prompt-tokens", "many"], 2, "'many' is no length"),
        (["--rate", "0"], 2, "above 0, got 0"),
        (["--trace", "/nowhere.jsonl"], 2, "nowhere.jsonl"),
        (["--model", "429"], 1, "a first request failed: rate_limited, 429"),
    ],
)
def test_what_can_not_be_measured_is_a_sentence(
    fake: FakeServer, capsys: pytest.CaptureFixture[str],
    arguments: list[str], status: int, message: str,
) -> None:  # fmt: skip
    assert serve.main(["--base-url", fake.base_url, *SMALL, *arguments]) == status
    assert message in capsys.readouterr().err


def test_a_wrong_address_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert serve.main(["--base-url", "http://127.0.0.1:1/v1"]) == 1
    assert "is --base-url right?" in capsys.readouterr().err


def test_without_an_address_our_own_server_is_measured(tmp_path: Path) -> None:
    kept = tmp_path / "load.json"
    own = ["--", "--max-model-len", "64", "--num-blocks", "16", "--device", "cpu"]
    assert serve.main([*SMALL, "--concurrency", "2", "--json", str(kept), *own]) == 0
    result = json.loads(kept.read_text())
    (point,) = result["sweeps"][0]["points"]
    assert point["requests"]["completed"] == 4
    assert point["tokens"] == {"prompt": 32, "output": 12}  # a word of our prompts is a token
    assert result["server"]["arguments"] == own[1:]
