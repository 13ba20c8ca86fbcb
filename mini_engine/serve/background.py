"""Owns a server in the background: `python -m mini_engine serve` for as long as a program needs it.

Chapters use it. The server ends with `stop`, with its last reference (a cell that starts it runs
again), with the program, and with a program that is killed.
"""

from __future__ import annotations

import ctypes
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from pathlib import Path

import httpx

PATIENCE_S = 120.0
SECONDS_TO_STOP = 30.0
PR_SET_PDEATHSIG = 1
LIBRARIES = {"tokenizers": "tokenizers", "ZeroMQ": "zmq", "torch": "libtorch_cpu"}
LIBC = ctypes.CDLL(None)


class BackgroundServer:
    """Starts at once, on a free port, with the arguments of the command line; `wait` for it.

    A context manager, too. What the server says goes to a file, `log`.
    """

    def __init__(self, *arguments: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.base_url = f"{self.url}/v1"  # as OpenAI's clients take it
        self._folder = tempfile.TemporaryDirectory(prefix="mini-engine-")
        self.log = Path(self._folder.name) / "log"
        command = [sys.executable, "-m", "mini_engine", "serve", "--port", str(port), *arguments]
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, preexec_fn=_end_with_parent
            )
        self._end = weakref.finalize(self, _end, self.process, self._folder)

    def wait(self) -> BackgroundServer:
        """Wait until it answers. Raises RuntimeError, with what it said, if it does not."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if httpx.get(f"{self.url}/health").status_code == 200:
                    return self
            except httpx.TransportError:
                time.sleep(0.1)
        said = self.log.read_text(errors="replace")
        self.stop()
        raise RuntimeError(f"the server did not start:\n{said}")

    def processes(self) -> list[dict[str, object]]:
        """What `processes` says of its processes."""
        return processes(self.process.pid)

    def metric(self, name: str) -> float:
        """A number under /metrics, summed over its labels. Raises ValueError if it isn't there."""
        text = httpx.get(f"{self.url}/metrics").text
        found = re.findall(rf"^mini_engine:{name}(?:\{{[^}}]*\}})? (\S+)$", text, re.M)
        if not found:
            raise ValueError(f"the server has no metric {name!r}")
        return sum(map(float, found))

    def stop(self) -> None:
        """End it, and with it its engine. Stopping twice is allowed."""
        self._end()

    def __enter__(self) -> BackgroundServer:
        return self.wait()

    def __exit__(self, *unused: object) -> None:
        self.stop()


def processes(pid: int) -> list[dict[str, object]]:
    """A server's processes: role, threads, memory in MB, which of LIBRARIES each has loaded."""
    found: list[dict[str, object]] = []
    for one in (pid, *children(pid)):
        folder = Path("/proc") / str(one)
        status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        maps = (folder / "maps").read_text()
        found.append(
            {
                "process": "front end" if one == pid else "engine core",
                "threads": int(status["Threads"]),
                "memory, MB": int(status["VmRSS"].split()[0]) // 1000,
                **{name: "yes" if mark in maps else "no" for name, mark in LIBRARIES.items()},
            }
        )
    return found


def children(pid: int) -> list[int]:
    """Process ids of a process's own children; those of a server are its engine core."""
    tasks = (Path("/proc") / str(pid) / "task").iterdir()
    return sorted(int(child) for task in tasks for child in (task / "children").read_text().split())


def _end(process: subprocess.Popen[bytes], folder: tempfile.TemporaryDirectory[str]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(SECONDS_TO_STOP)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    folder.cleanup()


def _end_with_parent() -> None:
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
