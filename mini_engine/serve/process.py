"""Owns the engine core's process: `python -m mini_engine.serve.process IN OUT OPTIONS`.

Started by the front end (`links.ProcessLink`) and ended by it; it also ends when its parent does.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mini_engine.serve import messages
from mini_engine.serve.core import EngineCore, Inbox
from mini_engine.serve.messages import Message

LOOK_MS = 1000  # how often an idle core looks whether its parent still lives


class SocketInbox:
    """Messages from a ZeroMQ socket; a "stop" once the parent is gone."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._parent = os.getppid()

    def receive(self, wait: bool) -> list[Message]:
        """All messages that are there; with `wait` at least one."""
        import zmq

        found: list[Message] = []
        while True:
            if os.getppid() != self._parent:
                return [{"kind": "stop"}]
            patience = LOOK_MS if wait and not found else 0
            if self._socket.poll(patience):
                found.append(messages.unpack(self._socket.recv(zmq.NOBLOCK)))
            elif found or not wait:
                return found


def run_core(options: dict[str, Any], inbox: Inbox, send: Callable[[Message], None]) -> None:
    """Make the engine and run its loop to the end; every failure is told before it is raised.

    options: those of LLMEngine as plain data, with "model" and, if wanted, "parts", the folder of a
    learner's files.
    """
    from mini_engine.engine import LLMEngine
    from mini_engine.learner_parts import use_folder

    try:
        rest = dict(options)
        folder = rest.pop("parts", None)
        parts = None
        if folder is not None:
            parts, lines = use_folder(Path(folder))
            print("\n".join(lines), file=sys.stderr, flush=True)
        with LLMEngine(parts=parts, trace_limit=1, tokens_only=True, **rest) as engine:
            EngineCore(engine, inbox, send).run()
    except Exception as error:
        send({"kind": "failed", "error": f"{type(error).__name__}: {error}"})
        raise


def main() -> None:
    """Connect, run, and say goodbye."""
    import zmq

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the front end, which stops us
    to_core, from_core, options = sys.argv[1:]
    context = zmq.Context()
    incoming, outgoing = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    incoming.setsockopt(zmq.RCVHWM, 0)
    outgoing.setsockopt(zmq.SNDHWM, 0)
    outgoing.setsockopt(zmq.LINGER, 2000)
    incoming.connect(to_core)
    outgoing.connect(from_core)
    try:
        run_core(
            json.loads(options),
            SocketInbox(incoming),
            lambda message: outgoing.send(messages.pack(message)),
        )
    finally:
        context.destroy()


if __name__ == "__main__":
    main()
