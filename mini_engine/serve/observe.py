"""Owns watching one streamed request from outside: what its client got, what the engine did.

The client reads the events of its answer, and beside it the server's /trace. Both stamp what comes
with the same clock; the engine's own clock began when the engine was made, and is set to ours by
the record or chunk that came soonest after the end of its step.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from mini_engine.trace import StepRecord, StepTimes

PATIENCE_S = 60.0


@dataclass(frozen=True)
class Observation:
    """Times in seconds from the moment the request was sent.

    `chunks` are (time, text) as the client got them, chunks without text left out; `steps` the
    records of the steps, with times on the same clock.
    """

    chunks: tuple[tuple[float, str], ...]
    steps: tuple[StepRecord, ...]
    ended: float


def observe(url: str, **body: Any) -> Observation:
    """Send a chat request to a server that serves nobody else, and watch it to its end.

    `body` are fields of the request; it is streamed. Raises httpx.HTTPError, and RuntimeError if
    the server refuses it or the trace does not come.
    """
    records: list[tuple[float, dict[str, Any]]] = []
    with (
        httpx.Client(base_url=url, timeout=PATIENCE_S) as client,
        client.stream("GET", "/trace") as trace,
    ):
        lines = trace.iter_lines()
        next(lines)  # its first event says that the watching has begun
        reader = threading.Thread(target=_read_trace, args=(lines, records))
        reader.start()
        sent = time.monotonic()
        chunks = list(_chunks(client, body))
        ended = time.monotonic()
        reader.join(PATIENCE_S)
    if reader.is_alive() or not records:
        raise RuntimeError("the trace of the request did not come to its end")
    ends = [record["times"]["end"] for _, record in records]
    # Chunk number k has the token of step k or of a later one, so it came after the end of step k.
    came = [when for when, _ in records], [when for when, _ in chunks]
    offset = min(when - end for each in came for when, end in zip(each, ends, strict=False))
    steps = tuple(_shifted(record, offset - sent) for _, record in records)
    return Observation(tuple((when - sent, text) for when, text in chunks), steps, ended - sent)


def _read_trace(lines: Iterator[str], records: list[tuple[float, dict[str, Any]]]) -> None:
    with contextlib.suppress(httpx.TransportError):  # closed: the request failed, which is told
        for line in lines:
            record = json.loads(line[6:]) if line.startswith("data: {") else {}
            if "step" in record:
                records.append((time.monotonic(), record))
                if record["finished"] or record["aborted"]:
                    return


def _chunks(client: httpx.Client, body: dict[str, Any]) -> Iterator[tuple[float, str]]:
    asked = {**body, "stream": True}
    with client.stream("POST", "/v1/chat/completions", json=asked) as answer:
        if answer.status_code != 200:
            raise RuntimeError(f"status {answer.status_code}: {answer.read().decode()[:300]}")
        for line in answer.iter_lines():
            now = time.monotonic()
            if line.startswith("data: {"):
                chunk = json.loads(line[6:])
                for choice in chunk.get("choices", ()):
                    text = choice["delta"].get("content")
                    if text:
                        yield now, text


def _shifted(record: dict[str, Any], by: float) -> StepRecord:
    times = StepTimes(**record["times"])
    moved = dataclasses.replace(times, start=times.start + by, end=times.end + by)
    return StepRecord(**{**record, "times": moved})
