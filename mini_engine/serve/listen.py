"""Owns the HTTP server's life: from its first connection to the end of its last request."""

from __future__ import annotations

import contextlib
import signal
import socket

import uvicorn
from fastapi import FastAPI

from mini_engine.serve.async_engine import AsyncEngine


def listen(app: FastAPI, engine: AsyncEngine, host: str, port: int, grace_s: int) -> None:
    """Serve until a signal comes; open requests then have `grace_s` seconds left."""

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            engine.end_watching()  # an event stream of steps would never end by itself
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app, host=host, port=port, log_level="warning", timeout_graceful_shutdown=grace_s
    )
    # uvicorn ends in good order and then raises the signal again, which would spoil the exit code.
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    with contextlib.suppress(KeyboardInterrupt):
        Server(config).run()
