"""Owns how a load is put on a server: open loop, closed loop, and the proof that we were in time.

In an open loop every request has its own moment, fixed before the run, and is sent then, whatever
the server does; in a closed loop so many clients each send their next request when their last one
has ended. Either way the latencies count from the moment a request was *due*. A generator that is
late therefore makes the numbers worse and never hides a wait of the server (no coordinated
omission), and its lateness is told apart: how late requests were sent, and how late the event loop
came back from short sleeps, which is the error of every time that is measured here.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass

import httpx

from mini_engine.benchmarks.serve_client import Sent, Target, make_client, send
from mini_engine.benchmarks.serve_workload import LoadRequest

LOOK_S = 0.02  # how often the event loop's lateness is sampled
LEAD_S = 0.05  # between the making of the tasks and the first moment


@dataclass(frozen=True)
class LoadResult:
    """The requests of a run in the order in which they were sent, and the event loop's lateness."""

    sent: list[Sent]
    loop_lags: list[float]

    @property
    def duration(self) -> float:
        """Seconds from the first request's moment to the end of the last answer."""
        return max(one.ended for one in self.sent) - min(one.due for one in self.sent)

    @property
    def send_lags(self) -> list[float]:
        """How late each request was sent; one whose deadline was over before that has none."""
        return [one.sent - one.due for one in self.sent if one.sent]


async def open_loop(
    target: Target, requests: Sequence[LoadRequest], moments: Sequence[float]
) -> LoadResult:
    """Send each request at its moment, in seconds from the start. Raises ValueError for none."""
    _check(requests)
    if len(moments) != len(requests):
        raise ValueError(f"{len(requests)} requests but {len(moments)} moments")
    async with make_client(target) as client, _watch_loop() as lags:
        start = time.perf_counter() + LEAD_S
        tasks = []
        for request, moment in zip(requests, moments, strict=True):
            due = start + moment
            await asyncio.sleep(max(due - time.perf_counter(), 0))
            tasks.append(asyncio.create_task(send(client, target, request, due)))
        return LoadResult(await asyncio.gather(*tasks), lags)


async def closed_loop(
    target: Target,
    requests: Sequence[LoadRequest],
    concurrency: int,
    seconds: float | None = None,
) -> LoadResult:
    """Serve all requests with so many clients; after `seconds` no client sends another one.

    Raises ValueError without requests and for less than one client.
    """
    _check(requests)
    if concurrency < 1:
        raise ValueError(f"the concurrency must be 1 or more, got {concurrency}")
    async with make_client(target) as client, _watch_loop() as lags:
        start = time.perf_counter()
        left = iter(requests)
        sent: list[Sent] = []
        workers = [
            _client(client, target, left, start, seconds, sent)
            for _ in range(min(concurrency, len(requests)))
        ]
        await asyncio.gather(*workers)
        return LoadResult(sorted(sent, key=lambda one: one.due), lags)


async def _client(
    client: httpx.AsyncClient,
    target: Target,
    left: Iterator[LoadRequest],
    start: float,
    seconds: float | None,
    sent: list[Sent],
) -> None:
    due = start
    while seconds is None or due - start < seconds:
        request = next(left, None)
        if request is None:
            return
        sent.append(await send(client, target, request, due))
        due = sent[-1].ended


@contextlib.asynccontextmanager
async def _watch_loop() -> AsyncIterator[list[float]]:
    """Collects how late the event loop wakes a task that sleeps, while the block runs."""
    lags: list[float] = []

    async def watch() -> None:
        while True:
            due = time.perf_counter() + LOOK_S
            await asyncio.sleep(LOOK_S)
            lags.append(max(time.perf_counter() - due, 0.0))

    task = asyncio.create_task(watch())
    try:
        yield lags
    finally:
        task.cancel()


def _check(requests: Sequence[LoadRequest]) -> None:
    if not requests:
        raise ValueError("a load needs at least one request, got none")
