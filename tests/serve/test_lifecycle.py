"""Clients that go away, limits, deadlines, the end of the server, and the death of its engine."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.serve.conftest import SIZES
from tests.serve.server import PATIENCE_S, Server, run_async

LONG: dict[str, Any] = {
    "prompt": "Once upon a time", "max_tokens": 240, "temperature": 0, "ignore_eos": True,
}  # fmt: skip


def begin_stream(server: Server, **more: Any) -> tuple[httpx.Response, Iterator[str]]:
    """A stream of which the first event has come; its response, and the lines that follow."""
    client = httpx.Client(timeout=PATIENCE_S)
    body = {**LONG, "stream": True, **more}
    request = client.build_request("POST", f"{server.url}/v1/completions", json=body)
    response = client.send(request, stream=True)
    lines = response.iter_lines()
    next(lines)
    return response, lines


@pytest.mark.parametrize("which", ["server", "in_process"])
def test_a_client_that_leaves_in_mid_stream_gives_its_blocks_back(
    which: str, request: pytest.FixtureRequest
) -> None:
    server: Server = request.getfixturevalue(which)
    response, _ = begin_stream(server)
    assert server.metric("requests_running") == 1
    response.close()
    server.wait_for("kv_cache_usage", 0.0)
    server.wait_for("requests_running", 0)


def test_a_client_that_leaves_before_a_whole_answer_does_too(server: Server) -> None:
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{server.url}/v1/completions", json=LONG, timeout=0.5)
    server.wait_for("requests_running", 0)
    server.wait_for("kv_cache_usage", 0.0)


async def leave_the_queue(server: Server, client: openai.OpenAI, headers: dict[str, str]) -> None:
    """One stream runs, two wait, a fourth is refused; those who leave while they wait are gone."""
    async with httpx.AsyncClient(timeout=PATIENCE_S, headers=headers) as web:
        url, body = f"{server.url}/v1/completions", {**LONG, "stream": True}
        asks = [asyncio.create_task(web.post(url, json=body))]
        await asyncio.to_thread(server.wait_for, "requests_running", 1)
        asks += [asyncio.create_task(web.post(url, json=body)) for _ in range(2)]
        await asyncio.to_thread(server.wait_for, "requests_waiting", 2)
        with pytest.raises(openai.RateLimitError, match="2 may") as caught:
            client.completions.create(model="smollm2-135m-instruct", prompt="a", max_tokens=2)
        assert caught.value.response.headers["retry-after"] == "1"
        for ask in reversed(asks):
            ask.cancel()
        await asyncio.gather(*asks, return_exceptions=True)
        await asyncio.to_thread(server.wait_for, "requests_waiting", 0)
        await asyncio.to_thread(server.wait_for, "requests_running", 0)
    assert server.metric("sampled_tokens_total") < LONG["max_tokens"]  # none ran to its end


def test_limits(tmp_path: Path) -> None:
    arguments = ("--max-waiting", "2", "--api-key", "secret", "--max-num-seqs", "1")
    with Server(*SIZES, *arguments, log=tmp_path / "log") as server:
        assert server.post("/v1/completions", **LONG).status_code == 401
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="secret", max_retries=0)
        client.models.list()
        many = ["a", "b", "c"]
        with pytest.raises(openai.BadRequestError, match="is 3; this server lets at most 2 wait"):
            client.completions.create(model="smollm2-135m-instruct", prompt=many, max_tokens=2)
        headers = {"Authorization": "Bearer secret"}
        server.headers = headers
        run_async(leave_the_queue(server, client, headers))
        big = httpx.post(f"{server.url}/v1/completions", content=b"x" * (5 << 20), headers=headers)
        assert big.status_code == 413
        assert "at most 4194304 are read" in big.json()["error"]["message"]
        broken = httpx.post(f"{server.url}/v1/completions", content=b"{", headers=headers)
        assert broken.status_code == 400
        assert httpx.get(f"{server.url}/nothing", headers=headers).status_code == 404


def test_a_deadline_ends_a_request(tmp_path: Path) -> None:
    with Server(*SIZES, "--timeout", "0.6", log=tmp_path / "log") as server:
        late = server.post("/v1/completions", **LONG)
        assert late.status_code == 504
        assert late.json()["error"]["message"] == "the request took longer than 0.6 s"
        _response, lines = begin_stream(server)
        rest = [line for line in lines if line]
        assert "took longer than 0.6 s" in rest[-2]
        assert rest[-1] == "data: [DONE]"
        server.wait_for("kv_cache_usage", 0.0)


def watch_steps(server: Server) -> tuple[httpx.Response, Iterator[str]]:
    """The page's event stream, of which the first lines have come."""
    client = httpx.Client(timeout=PATIENCE_S)
    response = client.send(client.build_request("GET", f"{server.url}/trace"), stream=True)
    lines = response.iter_lines()
    assert next(lines) == "event: engine"
    return response, lines


def test_when_the_engine_process_dies_streams_end_with_an_error(tmp_path: Path) -> None:
    with Server(*SIZES, log=tmp_path / "log") as server:
        _response, lines = begin_stream(server)
        _watch, steps = watch_steps(server)
        (core,) = server.children()
        os.kill(core, signal.SIGKILL)
        rest = [line for line in lines if line]
        assert "the engine process ended with code -9" in rest[-2]
        assert rest[-1] == "data: [DONE]"
        list(steps)  # this stream ends, too
        health = httpx.get(f"{server.url}/health")
        assert health.status_code == 503
        assert "code -9" in health.json()["reason"]
        refused = server.post("/v1/completions", **LONG)
        assert refused.status_code == 503
        assert server.metric("engine_alive") == 0


def test_when_the_server_dies_so_does_its_engine(tmp_path: Path) -> None:
    with Server(*SIZES, log=tmp_path / "log") as server:
        (core,) = server.children()
        server.stop(signal.SIGKILL)
        began = time.monotonic()
        while Path(f"/proc/{core}").exists() and time.monotonic() - began < PATIENCE_S:
            time.sleep(0.1)
        assert not Path(f"/proc/{core}").exists()


def test_the_end_of_the_server_lets_open_requests_finish_within_its_grace(tmp_path: Path) -> None:
    with Server(*SIZES, "--grace", "60", log=tmp_path / "log") as server:
        _response, lines = begin_stream(server, max_tokens=30)
        ended: list[int] = []
        thread = threading.Thread(target=lambda: ended.append(server.stop()))
        thread.start()
        rest = [line for line in lines if line]
        thread.join()
        assert ended == [0]
        assert '"finish_reason": "length"' in rest[-2]


def test_an_open_page_does_not_hold_the_server_up(tmp_path: Path) -> None:
    """Its event stream never ends by itself; the server's patience here is longer than ours."""
    with Server(*SIZES, "--grace", str(int(3 * PATIENCE_S)), log=tmp_path / "log") as server:
        _watch, steps = watch_steps(server)
        assert server.stop() == 0
        list(steps)


def test_after_its_grace_the_server_ends_anyway(tmp_path: Path) -> None:
    with Server(*SIZES, "--grace", "1", log=tmp_path / "log") as server:
        response, _ = begin_stream(server)
        assert server.stop() == 0
        response.close()


def test_a_model_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(RuntimeError, match="did not start"):
        Server("--model", str(tmp_path / "nothing"), log=log).__enter__()
    assert "error: " in log.read_text()
    assert "Traceback" not in log.read_text()
