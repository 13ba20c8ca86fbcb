"""Owns the child process: starts it, asks it, watches its time, memory and output, ends it.

The process has its own session, so that Ctrl-C reaches the judge only, and a mark in its
environment, by which all that it started is found and ended with it (see `watch.marked`). Needs a
POSIX system (Linux, macOS, WSL).
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from judge import stack, watch, wire
from judge.allowance import Allowance
from judge.api import Status
from judge.pipes import Pipes

ROOT = Path(__file__).resolve().parents[1]
MAX_OUTPUT = 16 * 1024 * 1024
PLAIN_MEMORY = 2 * 1024**3  # address space of a child without torch
# Resident, since torch reserves far more address space than it uses.
TORCH_MEMORY = min(8 * 1024**3, watch.memory_of_machine() * 3 // 4 or 8 * 1024**3)
IMPORT_LIMIT_S = 10.0
TORCH_IMPORT_LIMIT_S = 60.0
TICK_S = 0.05
THREADS = max(1, (os.cpu_count() or 2) // 2)  # learner and reference compute at the same time
MAX_PROCESSES = 64  # of one child, with all that it started
MARK = "MINI_ENGINE_JUDGED"  # in the environment of a child and of all that it starts
STACK_S = 0.5  # for a child that is asked where it stands


@dataclass(frozen=True)
class Source:
    """What a child loads: `symbols` of `file`, and `parts` given as "module:name" strings."""

    file: Path | None = None
    symbols: tuple[str, ...] = ()
    parts: Mapping[str, str] = field(default_factory=dict)
    torch: bool = False
    device: str = "cpu"
    slot: str | None = None


class ChildFailed(Exception):
    """The child gave no answer: `status` and `lines` say why, `frames` where it stood."""

    def __init__(
        self,
        status: Status,
        *lines: str,
        raised: wire.Raised | None = None,
        frames: tuple[wire.Frame, ...] = (),
    ) -> None:
        super().__init__(lines[0] if lines else status)
        self.status = status
        self.lines = lines
        self.raised = raised
        self.frames = raised.frames if raised is not None else frames


class Worker:
    """One child process. `start`, `load` and `ask` do not wait; `ready` and `answer` do."""

    def __init__(self, source: Source, *, foreground: bool = False) -> None:
        self.source = source
        self.foreground = foreground
        self.info: dict[str, Any] | None = None
        self._last_output = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._number = self._loading = self._answered = 0  # messages sent; of them, seen back

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def _pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None

    @property
    def output(self) -> str:
        """The end of what the learner's code printed since `forget_output`."""
        return self._pipes.output if self.alive else self._last_output

    def forget_output(self) -> None:
        """Let what is printed from here on belong to the next check."""
        self._pipes.forget_output()

    @property
    def idle(self) -> bool:
        """Alive, it has answered all that it was sent, and nothing that it started runs on."""
        if not self.alive or self._answered != self._number:
            return False
        return self.foreground or len(watch.marked(self._mark)) <= 1

    def start(self) -> None:
        """Start the process and tell it what to load."""
        if sys.platform == "win32":
            raise RuntimeError("the judge needs a POSIX system; on Windows use WSL")
        request_read, request = os.pipe()
        result, result_write = os.pipe()
        captured = None if self.foreground else subprocess.PIPE
        folder = self.source.file.parent if self.source.file else ROOT
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        value = secrets.token_hex(8)
        self._mark = f"{MARK}={value}"
        environment = os.environ | {
            MARK: value,
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(THREADS)),
            "PYTHONIOENCODING": "utf-8:backslashreplace",
        }
        command = [sys.executable, "-P", "-m", "judge.child", str(request_read), str(result_write)]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=None if self.foreground else subprocess.DEVNULL,
                stdout=captured,
                stderr=None if self.foreground else subprocess.STDOUT,
                cwd=folder,
                env=environment,
                pass_fds=(request_read, result_write),
                start_new_session=not self.foreground,
            )
        finally:
            os.close(request_read)
            os.close(result_write)
        self._pipes = Pipes(request, result, self._process.stdout)
        self._tasks = watch.all_tasks()
        self.info = None
        self._send({"limits": self._limits(), "load": self._load()})

    def load(self, source: Source) -> None:
        """Load another source, the file afresh, in the same process; `ready` tells how it went.

        `info` then holds "stale" if this process is not what a new one would be.
        """
        assert (source.torch, source.device) == (self.source.torch, self.source.device)
        self.source, self.info = source, None
        self._pipes.forget_output()
        self._send({"load": self._load()})

    def _send(self, message: dict[str, Any]) -> None:
        self._number += 1
        if "load" in message:
            self._loading = self._number
        self._pipes.send(wire.encode({"number": self._number, **message}))

    def _limits(self) -> dict[str, Any]:
        torch, unlimited = self.source.torch, self.foreground
        return {
            "torch": torch,
            "memory": 0 if unlimited or torch else PLAIN_MEMORY,
            "cpu_s": 0 if unlimited else (1800 if torch else 120),  # after each load
        }

    def _load(self) -> dict[str, Any]:
        source = self.source
        return {
            "file": str(source.file) if source.file else None,
            "module": source.file.stem if source.file else None,
            "symbols": list(source.symbols),
            "parts": dict(source.parts),
            "device": source.device,
            "slot": source.slot,
        }

    def ready(self) -> dict[str, Any]:
        """Wait until the file is loaded. Raises ChildFailed if it can't be."""
        if self.info is None:
            limit = TORCH_IMPORT_LIMIT_S if self.source.torch else IMPORT_LIMIT_S
            file = self.source.file
            doing = f"importing {file.name}" if file else "starting"
            info = self._reply(Allowance(limit), doing, self._loading)
            if not isinstance(info, dict):
                raise ChildFailed("error", "the result channel holds something that is no answer")
            if isinstance(info.get("raised"), wire.Raised):
                raise self._not_imported(info["raised"])
            if "missing" in info:
                names = ", ".join(str(name) for name in info["missing"])
                raise ChildFailed("error", f"the file has no {names}")
            self.info = info
        return self.info

    def _not_imported(self, raised: wire.Raised) -> ChildFailed:
        lines = ["the file can't be imported"]
        inside = any("torch" in Path(frame.file).parts for frame in raised.frames)
        if inside and not self.source.torch:
            lines.append(
                "it loads torch, which this exercise does not need and has no room for "
                f"({PLAIN_MEMORY >> 30} GB of addresses): import torch inside the functions that do"
            )
        return ChildFailed("error", *lines, raised=raised)

    def ask(self, execute: str, payload: Any, parts: Mapping[str, str] | None = None) -> None:
        """Send a case; `answer` collects what comes back. `parts` stand in for those loaded."""
        self._send({"execute": execute, "payload": payload, "parts": dict(parts or {})})

    def answer(self, limit: float | Allowance) -> Any:
        """Wait for the answer to the case asked last. Raises ChildFailed.

        An Allowance serves several answers: each takes away from it.
        """
        self.ready()
        allowance = limit if isinstance(limit, Allowance) else Allowance(limit)
        return self._reply(allowance, "running this check", self._number)

    def _reply(self, allowance: Allowance, doing: str, number: int) -> Any:
        message = self._wait(allowance, doing)
        if not isinstance(message, dict) or message.get("number") != number:
            raise ChildFailed("error", "the result channel holds something that is no answer")
        self._answered = number
        return message.get("answer")

    def _wait(self, allowance: Allowance, doing: str) -> Any:
        """Pump the pipes until a whole message is there."""
        assert self._process is not None
        then, cpu = time.monotonic(), watch.cpu_seconds(self._pid)
        while (message := self._message()) is None:
            # Looked at before the pipes, so that nothing is left in them.
            ended = watch.exited(self._process)
            open_channel = self._pipes.pump(0.0 if ended else TICK_S)
            if not open_channel or (ended and not self._pipes.partial):
                raise self._ended()
            if self.foreground:
                continue
            self._check_bounds()
            if allowance.used_up():
                raise self._out_of_time(allowance, doing)
            now, used = time.monotonic(), watch.cpu_seconds(self._pid)
            allowance.spend(now - then, used - cpu, active=watch.active(self._pid))
            then, cpu = now, used
        self._read_output()
        return message[0]

    def _message(self) -> tuple[Any] | None:
        """A whole message, if one has arrived. Raises ChildFailed for one that can't be read."""
        try:
            return self._pipes.message()
        except wire.WireError as error:
            raise ChildFailed("error", str(error)) from error

    def _read_output(self) -> None:
        """All that was printed by now, for whoever shows it."""
        while self._pipes.read_output():
            self._check_bounds()

    def _check_bounds(self) -> None:
        if self._pipes.printed > MAX_OUTPUT:
            self.close()
            raise ChildFailed(
                "error", f"it printed more than {MAX_OUTPUT >> 20} MB and was stopped"
            )
        if self.source.torch and watch.resident_bytes(self._pid) > TORCH_MEMORY:
            frames = self._where()
            self.close()
            limit = f"{TORCH_MEMORY / 2**30:.3g} GB"
            raise ChildFailed("crashed", f"it used more than {limit} of memory", frames=frames)
        grown = watch.all_tasks() - self._tasks > MAX_PROCESSES  # cheap; counting ours is not
        if grown and not self.foreground and len(watch.marked(self._mark)) > MAX_PROCESSES:
            self.close()
            raise ChildFailed("crashed", f"it started more than {MAX_PROCESSES} processes")

    def _out_of_time(self, allowance: Allowance, doing: str) -> ChildFailed:
        frames = self._where()
        self.close()
        what, limit = allowance.used_up()
        return ChildFailed("timeout", f"stopped while {doing}: {what}", limit, frames=frames)

    def _where(self) -> tuple[wire.Frame, ...]:
        """Where the child stands now, as far as it can be asked (its faulthandler answers)."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGUSR1)
        until = time.monotonic() + STACK_S
        while time.monotonic() < until and not self._pipes.output.endswith(stack.LAST_LINE):
            if not self._pipes.pump(TICK_S):
                break
        return self._frames(stack.ON_REQUEST)

    def _frames(self, begin: str) -> tuple[wire.Frame, ...]:
        """The stack that the child printed, which is then no output of the learner's."""
        self._pipes.output, text = stack.split(self._pipes.output, begin)
        return stack.frames(text, self._folder)

    @property
    def _folder(self) -> Path | None:
        return self.source.file.parent if self.source.file else None

    def _ended(self) -> ChildFailed:
        """Why a process that closed its channel has ended, or that it only closed the channel."""
        assert self._process is not None
        watch.wait_for_exit(self._process)
        self._pipes.pump(0.0)
        self._read_output()
        code = self._process.poll()
        if code is None:
            self.close()
            return ChildFailed("error", "it closed the judge's result channel")
        frames = self._frames(stack.FATAL)
        self.close()
        return ChildFailed("crashed", *watch.last_words(code), frames=frames)

    def close(self) -> None:
        """End the process and everything that it started."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.foreground:
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        watch.end_marked(self._mark)
        self._last_output = self._pipes.output
        self._pipes.close()
