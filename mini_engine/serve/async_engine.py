"""Owns the front end's view of the engine: text in, an asynchronous stream of outputs out.

Tokenizes, keeps each request's text and stop strings, and passes tokens to and from the core.
Compare `AsyncLLM` in vLLM's `vllm/v1/engine/async_llm.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from mini_engine.control.request import Request
from mini_engine.intake import Intake, Prompt
from mini_engine.outputs import OutputStream, RequestOutput
from mini_engine.parts import EngineParts
from mini_engine.sampling_params import SamplingParams
from mini_engine.serve import messages
from mini_engine.serve.links import CoreLink
from mini_engine.serve.messages import Message


class EngineDead(RuntimeError):
    """The engine core has ended; nothing can be served any more."""


class QueueFull(RuntimeError):
    """Too many requests wait already."""


@dataclass
class _Serving:
    """A request under way: its text so far, and what its consumer has not read yet."""

    stream: OutputStream
    queue: asyncio.Queue[RequestOutput | Exception]
    has_output: bool = False


@dataclass
class AsyncEngine:
    """Requests in, streams of RequestOutputs out; any number at once, in one event loop.

    `max_waiting` bounds the requests that have no output yet. `on_record` is called with every step
    record while the trace is watched.
    """

    link: CoreLink
    tokenizer: Any
    max_waiting: int = 256
    parts: EngineParts = field(default_factory=EngineParts)

    def __post_init__(self) -> None:
        self.described: dict[str, Any] = {}
        self.state: dict[str, int] = {}
        self.error: str | None = None
        self.started = False
        self.watchers: set[Callable[[dict[str, Any]], None]] = set()
        self._serving: dict[str, _Serving] = {}
        self._num_requests = 0

    async def start(self) -> None:
        """Start the core and wait until its model is loaded. Raises EngineDead if it can't."""
        self._ready = asyncio.Event()
        await self.link.start(self._take)
        await self._ready.wait()
        if self.error is not None:
            await self.close()
            raise EngineDead(self.error)
        self.started = True
        self.intake = Intake(
            self.parts,
            self.tokenizer,
            self.described["eos_token_ids"],
            self.described["vocab_size"],
        )

    async def close(self) -> None:
        """End the core; requests still open end with EngineDead."""
        self._fail("the server is shutting down")
        await self.link.close()

    @property
    def num_waiting(self) -> int:
        """Requests without any output so far."""
        return sum(not serving.has_output for serving in self._serving.values())

    async def generate(
        self, prompt: Prompt, params: SamplingParams, *, request_id: str | None = None,
        priority: int = 0, cache_salt: str | None = None,
    ) -> AsyncIterator[RequestOutput]:  # fmt: skip
        """The outputs of a request as they come; those of its `n` choices mixed.

        Leaving the loop early aborts what is unfinished. Raises ValueError for what can't be
        served, QueueFull, and EngineDead; before the first output, or (the last) at any time.
        """
        if self.error is not None:
            raise EngineDead(self.error)
        if self.num_waiting + params.n > self.max_waiting:
            raise QueueFull(f"{self.num_waiting} requests wait already, {self.max_waiting} may")
        requests = self._requests(prompt, params, request_id, priority, cache_salt)
        queue: asyncio.Queue[RequestOutput | Exception] = asyncio.Queue()
        for request in requests:
            self._serving[request.request_id] = _Serving(self.intake.stream(request), queue)
            self.link.send(messages.add(request))
        open_ids = {request.request_id for request in requests}
        try:
            while open_ids:
                output = await queue.get()
                if isinstance(output, Exception):
                    raise output
                if output.finished:
                    open_ids.discard(output.request_id)
                yield output
        finally:
            self._abort(open_ids)

    def _requests(
        self, prompt: Prompt, params: SamplingParams, request_id: str | None, priority: int,
        cache_salt: str | None,
    ) -> list[Request]:  # fmt: skip
        name = request_id or f"request-{self._num_requests}"
        self._num_requests += 1
        if params.n == 1:
            requests = [self.intake.request(name, prompt, params, priority, cache_salt)]
        else:
            requests = self.intake.choices(name, prompt, params, priority, cache_salt)
        taken = [r.request_id for r in requests if r.request_id in self._serving]
        if taken:
            raise ValueError(f"request {taken[0]!r} is being served already; ids must be unique")
        return requests

    def _abort(self, request_ids: set[str]) -> None:
        known = [one for one in request_ids if self._serving.pop(one, None) is not None]
        if known and self.error is None:
            self.link.send({"kind": "abort", "ids": known})

    def watch(self, watcher: Callable[[dict[str, Any]], None]) -> None:
        """Call `watcher` with each step record from now on."""
        self.watchers.add(watcher)
        self.link.send({"kind": "trace", "on": True})

    def unwatch(self, watcher: Callable[[dict[str, Any]], None]) -> None:
        """The end of `watch`."""
        self.watchers.discard(watcher)
        if not self.watchers and self.error is None:
            self.link.send({"kind": "trace", "on": False})

    # What the core says

    def _take(self, message: Message) -> None:
        kind = message["kind"]
        if kind == "outputs":
            self.state = message["state"]
            for entry in message["outputs"]:
                self._take_output(entry)
            for watcher in tuple(self.watchers) if "record" in message else ():
                watcher(message["record"])
        elif kind == "ready":
            self.described = message["engine"]
            self._ready.set()
        elif kind == "refused":
            serving = self._serving.pop(message["id"], None)
            if serving is not None:
                serving.queue.put_nowait(ValueError(message["error"]))
        elif kind == "failed":
            self._fail(message["error"])

    def _take_output(self, entry: Message) -> None:
        serving = self._serving.get(entry["id"])
        if serving is None:
            return  # it was aborted here, and the core did not know yet
        stream = serving.stream
        for token_id in entry["tokens"]:
            stream.request.append_output(token_id)
        stream.request.finish_reason = entry["reason"]
        stream.logprobs += messages.logprobs(entry.get("logprobs", []))
        told = entry.get("prompt_logprobs", {})
        values = messages.logprobs(list(told.values()))
        stream.prompt_logprobs.update(zip(told, values, strict=True))
        output = stream.take()
        serving.has_output = True
        if output.finished:
            del self._serving[entry["id"]]
            if entry["reason"] is None:  # a stop string, of which the core knows nothing
                self.link.send({"kind": "abort", "ids": [entry["id"]]})
        serving.queue.put_nowait(output)

    def _fail(self, error: str) -> None:
        if self.error is not None:
            return
        self.error = error
        self._ready.set()
        for serving in self._serving.values():
            serving.queue.put_nowait(EngineDead(error))
        self._serving.clear()
