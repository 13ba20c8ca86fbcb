"""Owns the front end's view of the engine: text in, an asynchronous stream of outputs out.

Tokenizes, keeps each request's text and stop strings, and passes tokens to and from the core.
Compare `AsyncLLM` in vLLM's `vllm/v1/engine/async_llm.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
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

Watcher = Callable[[dict[str, Any] | None], None]


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

    `max_waiting` bounds the requests that have no output yet.
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
        self.watchers: set[Watcher] = set()
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
        self, prompts: Sequence[Prompt], params: Sequence[SamplingParams], *,
        request_id: str | None = None, priority: int = 0, cache_salt: str | None = None,
        timeout_s: float | None = None,
    ) -> AsyncIterator[tuple[int, RequestOutput]]:  # fmt: skip
        """The outputs of all prompts and their `n` choices, mixed as they come.

        Each comes with the number of its prompt. Leaving the loop early aborts what is unfinished.
        Raises ValueError for what can't be served, QueueFull, EngineDead, and TimeoutError after
        `timeout_s`; the first two before the first output only.
        """
        if self.error is not None:
            raise EngineDead(self.error)
        count = sum(one.n for one in params)
        if count > self.max_waiting:
            raise ValueError(
                f"prompts times n is {count}; this server lets at most {self.max_waiting} wait"
            )
        if self.num_waiting + count > self.max_waiting:
            raise QueueFull(
                f"{self.num_waiting} requests wait already and {count} more came; "
                f"{self.max_waiting} may"
            )
        requests = self._requests(prompts, params, request_id, priority, cache_salt)
        queue: asyncio.Queue[RequestOutput | Exception] = asyncio.Queue()
        open_ids: dict[str, int] = {}
        timer = _deadline(queue, timeout_s)
        try:
            for number, request in requests:
                open_ids[request.request_id] = number
                self._serving[request.request_id] = _Serving(self.intake.stream(request), queue)
                self.link.send(messages.add(request))
            while open_ids:
                output = await queue.get()
                if isinstance(output, Exception):
                    raise output
                number = open_ids[output.request_id]
                if output.finished:
                    del open_ids[output.request_id]
                yield number, output
        finally:
            if timer is not None:
                timer.cancel()
            self._abort(open_ids)

    def _requests(
        self, prompts: Sequence[Prompt], params: Sequence[SamplingParams], request_id: str | None,
        priority: int, cache_salt: str | None,
    ) -> list[tuple[int, Request]]:  # fmt: skip
        """A request for each choice of each prompt; all are checked before any is sent."""
        base = request_id or f"request-{self._num_requests}"
        self._num_requests += 1
        found: list[tuple[int, Request]] = []
        for number, (prompt, one) in enumerate(zip(prompts, params, strict=True)):
            name = f"{base}-{number}"
            if one.n == 1:
                requests = [self.intake.request(name, prompt, one, priority, cache_salt)]
            else:
                requests = self.intake.choices(name, prompt, one, priority, cache_salt)
            found += [(number, request) for request in requests]
        taken = [one.request_id for _, one in found if one.request_id in self._serving]
        if taken:
            raise ValueError(f"request {taken[0]!r} is being served already; ids must be unique")
        return found

    def _abort(self, request_ids: Iterable[str]) -> None:
        known = [one for one in request_ids if self._serving.pop(one, None) is not None]
        if known and self.error is None:
            self.link.send({"kind": "abort", "ids": known})

    def watch(self, watcher: Watcher) -> None:
        """Call `watcher` with each step record from now on, and with None when no more will come.

        Raises EngineDead.
        """
        if self.error is not None:
            raise EngineDead(self.error)
        self.watchers.add(watcher)
        self.link.send({"kind": "trace", "on": True})

    def end_watching(self) -> None:
        """Tell all watchers that no more records come."""
        for watcher in tuple(self.watchers):
            watcher(None)

    def unwatch(self, watcher: Watcher) -> None:
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
        if "logprobs" in entry:
            stream.logprobs += messages.logprobs(entry["logprobs"])
        if "prompt_logprobs" in entry:
            told = entry["prompt_logprobs"]
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
        self.error, self.state = error, {}
        self._ready.set()
        for serving in self._serving.values():
            serving.queue.put_nowait(EngineDead(error))
        self._serving.clear()
        self.end_watching()


def _deadline(
    queue: asyncio.Queue[RequestOutput | Exception], seconds: float | None
) -> asyncio.TimerHandle | None:
    """Puts a TimeoutError into the queue when the time is over: one timer, not one per output."""
    if seconds is None:
        return None
    error = TimeoutError(f"the request took longer than {seconds:g} s")
    return asyncio.get_running_loop().call_later(seconds, queue.put_nowait, error)
