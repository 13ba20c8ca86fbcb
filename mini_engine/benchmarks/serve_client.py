"""Owns one request of a load test: sent to any server of OpenAI's API, timed, its end classified.

Times are `time.perf_counter` seconds as this client sees them. A token's time is that of the chunk
that carries its text. Where the server counts more tokens than chunks came (several tokens in one
chunk, or tokens without text), the missing ones stand at the last chunk's time: TTFT and TPOT are
then right, and a gap between tokens is a gap between chunks, which is what a reader feels.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import Any

import httpx

from mini_engine.benchmarks.serve_workload import LoadRequest

# How a request can fail: status 429, another 4xx, 5xx (or an error event of that code), no end
# before the client's deadline, a stream that breaks off, one that can't be read, no connection.
FAILURES = (
    "rate_limited", "refused", "server_error", "timeout", "dropped", "malformed", "unreachable",
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A server: `base_url` as OpenAI's clients take it (it ends in /v1), and what to ask it for.

    `extra` are more fields of the request's body. `timeout_s` is the client's deadline for one
    request, from the moment it was due.
    """

    base_url: str
    model: str
    api_key: str | None = None
    chat: bool = False
    timeout_s: float = 300.0
    extra: dict[str, Any] = field(default_factory=dict)

    def body(self, request: LoadRequest) -> dict[str, Any]:
        """The request's JSON."""
        asked: dict[str, Any] = {"prompt": request.prompt}
        if self.chat:
            asked = {"messages": [{"role": "user", "content": request.prompt}]}
        return {
            "model": self.model, **asked, "max_tokens": request.max_tokens, "temperature": 0,
            "stream": True, "stream_options": {"include_usage": True}, **self.extra,
        }  # fmt: skip

    @property
    def path(self) -> str:
        """Below the base URL."""
        return "chat/completions" if self.chat else "completions"


@dataclass
class Sent:
    """What became of one request. `due` is when it had to be sent, `sent` when it was.

    `failure` is None or one of FAILURES, `detail` says more about it. A failed request keeps the
    chunks that it got.
    """

    due: float
    sent: float = 0.0
    ended: float = 0.0
    chunk_times: list[float] = field(default_factory=list)
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    failure: str | None = None
    detail: str = ""

    @property
    def token_times(self) -> list[float]:
        """The time of each token, as the module's first lines define it."""
        times = self.chunk_times
        if not times or self.output_tokens is None:
            return times
        count = max(self.output_tokens, 1)
        return times[: count - 1] + times[-1:] * (count - min(count - 1, len(times)))


class StreamError(Exception):
    """A stream that is no good answer; `kind` is one of FAILURES."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def make_client(target: Target) -> httpx.AsyncClient:
    """A client without a limit of its own: a request never waits here for another one to end."""
    headers = {} if target.api_key is None else {"Authorization": f"Bearer {target.api_key}"}
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    base = target.base_url.rstrip("/") + "/"
    return httpx.AsyncClient(base_url=base, headers=headers, limits=limits, timeout=None)


async def send(client: httpx.AsyncClient, target: Target, request: LoadRequest, due: float) -> Sent:
    """Send a request and read its answer to the end. Failures are noted, never raised."""
    result = Sent(due)
    try:
        async with asyncio.timeout(due + target.timeout_s - time.perf_counter()):
            await _read(client, target, request, result)
    except TimeoutError:
        result.failure = "timeout"
        result.detail = f"no end after {target.timeout_s:g} s"
    except StreamError as error:
        result.failure, result.detail = error.kind, str(error)
    except httpx.TransportError as error:
        # Nothing of an answer came: nobody listens there. Else it broke off on its way.
        unreachable = isinstance(error, httpx.ConnectError)
        result.failure = "unreachable" if unreachable else "dropped"
        result.detail = f"{type(error).__name__}: {error}"
    result.ended = time.perf_counter()
    return result


async def _read(
    client: httpx.AsyncClient, target: Target, request: LoadRequest, result: Sent
) -> None:
    body = json.dumps(target.body(request)).encode()
    headers = {"Content-Type": "application/json"}
    result.sent = time.perf_counter()
    async with client.stream("POST", target.path, content=body, headers=headers) as response:
        if response.status_code != 200:
            text = (await response.aread()).decode(errors="replace")
            raise StreamError(
                kind_of(response.status_code), f"{response.status_code}: {text[:300]}"
            )
        whole = False
        async for line in response.aiter_lines():
            data = line.removeprefix("data:").strip()
            if data == "[DONE]":
                return
            if line.startswith("data:"):  # else a comment, a field of another kind, or the border
                whole = _take(data, result) or whole
        if not whole:
            raise StreamError("dropped", "the stream ended without a finish reason or [DONE]")


def kind_of(status: int) -> str:
    """The kind of failure that an HTTP status means."""
    if status == 429:
        return "rate_limited"
    return "server_error" if status >= 500 else "refused"


def _take(data: str, result: Sent) -> bool:
    """Note one chunk; returns whether it says that the answer is whole."""
    now = time.perf_counter()
    try:
        chunk = json.loads(data)
        if error := chunk.get("error"):
            code = error.get("code") if isinstance(error, dict) else None
            code = code if isinstance(code, int) else 500
            raise StreamError(kind_of(code), f"error in the stream: {error}")
        usage = chunk.get("usage")
        if usage:
            result.prompt_tokens = int(usage["prompt_tokens"])
            result.output_tokens = int(usage["completion_tokens"])
        finished = False
        for choice in chunk.get("choices", ()):
            delta = choice.get("delta") or {}
            if choice.get("text") or delta.get("content") or delta.get("reasoning_content"):
                result.chunk_times.append(now)
            finished = finished or choice.get("finish_reason") is not None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StreamError("malformed", f"{type(error).__name__} in {data[:200]!r}") from error
    return finished


def served_model(base_url: str, api_key: str | None) -> str:
    """The first model that a server lists. Raises RuntimeError if it can't be asked."""
    headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
    address = base_url.rstrip("/") + "/models"
    try:
        answer = httpx.get(address, headers=headers, timeout=30)
        answer.raise_for_status()
        listed: Any = answer.json()
        return str(listed["data"][0]["id"])
    except (httpx.HTTPError, ValueError, LookupError, TypeError) as error:
        raise RuntimeError(
            f"{address} names no model ({type(error).__name__}: {error}); is --base-url right? It "
            "ends in /v1 as a rule. Else name the model with --model"
        ) from error
