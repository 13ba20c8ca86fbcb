"""Owns mini_engine's own server as a benchmark's target: started, waited for, ended."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import httpx

PATIENCE_S = 300.0
SECONDS_TO_STOP = 30.0


class OwnServer:
    """`python -m mini_engine serve` with these arguments. A context manager: leaving it ends it.

    Raises RuntimeError if the server does not answer within PATIENCE_S; what it says goes to
    standard error.
    """

    def __init__(self, arguments: Sequence[str] = ()) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.base_url = f"http://127.0.0.1:{self.port}/v1"
        command = [sys.executable, "-m", "mini_engine", "serve", "--port", str(self.port)]
        self._command = [*command, *arguments]

    def __enter__(self) -> OwnServer:
        self.process = subprocess.Popen(self._command)
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if httpx.get(f"http://127.0.0.1:{self.port}/health").status_code == 200:
                    return self
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        self.__exit__()
        raise RuntimeError(f"the server did not start: {' '.join(self._command)}")

    def __exit__(self, *unused: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


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
