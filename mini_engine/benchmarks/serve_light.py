"""Owns clients that cost next to nothing: sockets that note when something comes.

Clients that run on the server's machine take processor time from it, which real ones do not.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from mini_engine.benchmarks.serve_client import Target, served_model
from mini_engine.benchmarks.serve_workload import LoadRequest


class LightClient(asyncio.Protocol):
    """Sends one request and notes when each event of its answer came; `gone` once it has ended."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._answer: list[bytes] = []
        self.times: list[float] = []
        self.gone = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """One event as a rule; each begins with "data: {" and carries one token."""
        self.times += [time.perf_counter()] * data.count(b"data: {")
        self._answer.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The answer is whole, or it failed."""
        answer = b"".join(self._answer)
        if exc is None and answer.startswith(b"HTTP/1.1 200 ") and b"data: [DONE]" in answer:
            self.gone.set_result(None)
        else:
            self.gone.set_exception(RuntimeError(f"a request failed: {exc or answer[:500]!r}"))


def with_server(url: str) -> Callable[[Sequence[LoadRequest]], list[list[float]]]:
    """A server, asked by as many clients as there are requests, each for a stream."""
    target = Target(f"{url}/v1", served_model(f"{url}/v1", None), extra={"ignore_eos": True})
    address = urlsplit(url)
    host, port = address.hostname or "127.0.0.1", address.port or 80

    def written(request: LoadRequest) -> bytes:
        body = json.dumps({**target.body(request), "stream_options": None}).encode()
        head = (
            f"POST /v1/completions HTTP/1.1\r\nHost: {address.netloc}\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    async def ask(request: bytes) -> list[float]:
        start = time.perf_counter()
        loop = asyncio.get_running_loop()
        _, client = await loop.create_connection(lambda: LightClient(request), host, port)
        await client.gone
        return [start, *client.times]

    async def ask_all(requests: list[bytes]) -> list[list[float]]:
        return await asyncio.gather(*map(ask, requests))

    return lambda requests: asyncio.run(ask_all([written(one) for one in requests]))
