"""Owns how the front end reaches the engine core: in a thread, or in a process behind ZeroMQ.

In one process the two share Python's interpreter lock: while the core computes what is not a
kernel, the front end stands still, and the other way round. Compare `AsyncMPClient` in vLLM's
`vllm/v1/engine/core_client.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import queue
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from mini_engine.serve import messages
from mini_engine.serve.messages import Message

OnMessage = Callable[[Message], None]
STOP: Message = {"kind": "stop"}
SECONDS_TO_STOP = 10.0


class CoreLink(Protocol):
    """One engine core, seen from the front end's event loop."""

    async def start(self, on_message: OnMessage) -> None:
        """Start the core; `on_message` is called in this loop with everything it says."""

    def send(self, message: Message) -> None:
        """Say something to the core; never waits."""

    async def close(self) -> None:
        """Stop the core and wait for its end."""


class ThreadLink:
    """The core in a thread of this process: easy to read, to debug, and to step through."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def start(self, on_message: OnMessage) -> None:
        """Raises what making the engine raises, in form of a "failed" message."""
        loop = asyncio.get_running_loop()

        def say(message: Message) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
                loop.call_soon_threadsafe(on_message, message)

        def run() -> None:
            from mini_engine.serve.process import run_core

            run_core(self._options, self, say)

        self._thread = threading.Thread(target=run, name="engine core", daemon=True)
        self._thread.start()

    def send(self, message: Message) -> None:
        self._inbox.put(message)

    def receive(self, wait: bool) -> list[Message]:
        """The core's side of `send`."""
        found = [self._inbox.get()] if wait else []
        with contextlib.suppress(queue.Empty):
            while True:
                found.append(self._inbox.get_nowait())
        return found

    async def close(self) -> None:
        self.send(STOP)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, SECONDS_TO_STOP)


class ProcessLink:
    """The core in a process of its own, with a ZeroMQ socket for each direction."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._folder = tempfile.TemporaryDirectory(prefix="mini-engine-")  # for this user only
        self._process: asyncio.subprocess.Process | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._closing = False

    async def start(self, on_message: OnMessage) -> None:
        """A core that ends by itself, for whatever reason, is reported as "failed"."""
        import zmq.asyncio

        self._context = zmq.asyncio.Context()
        to_core, from_core = (f"ipc://{Path(self._folder.name) / name}" for name in ("in", "out"))
        self._push, self._pull = (
            self._context.socket(zmq.PUSH),
            self._context.socket(zmq.PULL),
        )
        for socket, address in ((self._push, to_core), (self._pull, from_core)):
            socket.setsockopt(zmq.LINGER, 0)
            socket.setsockopt(zmq.SNDHWM, 0)
            socket.setsockopt(zmq.RCVHWM, 0)
            socket.bind(address)
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "mini_engine.serve.process", to_core, from_core,
            json.dumps(self._options),
        )  # fmt: skip
        self._tasks = [
            asyncio.create_task(self._read(on_message)),
            asyncio.create_task(self._watch(self._process, on_message)),
        ]

    async def _read(self, on_message: OnMessage) -> None:
        while True:
            on_message(messages.unpack(await self._pull.recv()))

    async def _watch(self, process: asyncio.subprocess.Process, on_message: OnMessage) -> None:
        code = await process.wait()
        if not self._closing:
            await asyncio.sleep(0.1)  # its last words may still be on their way
            on_message({"kind": "failed", "error": f"the engine process ended with code {code}"})

    def send(self, message: Message) -> None:
        # The queue has no limit: what may wait is limited where requests come in.
        sending = asyncio.ensure_future(self._push.send(messages.pack(message)))
        sending.add_done_callback(_forget)

    async def close(self) -> None:
        self._closing = True
        if self._process is not None and self._process.returncode is None:
            self.send(STOP)
            try:
                await asyncio.wait_for(self._process.wait(), SECONDS_TO_STOP)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._process is not None:
            self._context.destroy(linger=0)
        self._folder.cleanup()


def _forget(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()  # the core is gone, which `_watch` reports
