"""A real server for tests: `python -m mini_engine serve`, on a port of its own."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import httpx

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 90.0


class Server:
    """A running server. A context manager: leaving it ends the server."""

    def __init__(self, *arguments: str, log: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = log
        self.headers: dict[str, str] = {}  # sent when metrics are read
        command = [sys.executable, "-m", "mini_engine", "serve", "--port", str(self.port)]
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        with log.open("w") as output:
            self.process = subprocess.Popen(
                [*command, "--device", "cpu", *arguments], cwd=ROOT, env=environment,
                stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def __enter__(self) -> Server:
        began = time.monotonic()
        while time.monotonic() - began < PATIENCE_S and self.process.poll() is None:
            try:
                if httpx.get(f"{self.url}/health").status_code == 200:
                    return self
            except httpx.TransportError:
                time.sleep(0.2)
        self.process.kill()
        raise RuntimeError(f"the server did not start:\n{self.log.read_text()}")

    def __exit__(self, *unused: object) -> None:
        self.stop()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    def post(self, path: str, **body: Any) -> httpx.Response:
        """A request with a JSON body."""
        return httpx.post(f"{self.url}{path}", json=body, timeout=PATIENCE_S)

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        text = httpx.get(f"{self.url}/metrics", timeout=PATIENCE_S, headers=self.headers).text
        found = re.findall(rf"^mini_engine:{name}(?:\{{[^}}]*\}})? (\S+)$", text, re.M)
        assert found, f"no metric {name}"
        return sum(map(float, found))

    def wait_for(self, name: str, value: float) -> None:
        """Wait until a metric has a value; an error if it never gets it."""
        began = time.monotonic()
        while (now := self.metric(name)) != value:
            if time.monotonic() - began > PATIENCE_S:
                raise AssertionError(f"{name} is {now}, not {value}")
            time.sleep(0.02)

    def children(self) -> list[int]:
        """Process ids of its children."""
        import psutil

        return [child.pid for child in psutil.Process(self.process.pid).children(recursive=True)]


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, run in a thread: a browser of other tests may leave its own event
    loop running in this one."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(asyncio.run, work).result()
