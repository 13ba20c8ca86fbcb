"""Owns the look at a process from outside: CPU time, state, memory, what it started, how it ended.

Reads /proc; on a system without it every number is 0 and every process counts as asleep.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

ROUNDS = 100  # of killing what starts ever new processes
MEANING = {
    "SIGKILL": ": it was killed from outside, or by the system for want of memory",
    "SIGSEGV": ": it read or wrote memory that is not its own (a segmentation fault)",
    "SIGXCPU": ": it used up the CPU time that one exercise may take",
    "SIGABRT": ": a library gave up (abort)",
}


def cpu_seconds(pid: int) -> float:
    """User and system time so far, with that of the processes it started and waited for."""
    fields = _stat(pid)
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def active(pid: int) -> bool:
    """Whether a thread of it runs, could run if it got a core, or waits for the disk."""
    return any(_state(task) in "RD" for task in _entries(Path(f"/proc/{pid}/task")))


def resident_bytes(pid: int) -> int:
    """Memory in use."""
    fields = _read(pid, "statm").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if fields else 0


def all_tasks() -> int:
    """Processes and threads of the whole machine."""
    try:
        return int(Path("/proc/loadavg").read_text("ascii").split()[3].partition("/")[2])
    except OSError:
        return 0


def marked(mark: str) -> list[int]:
    """The living processes that were started with `mark` (NAME=VALUE) in their environment.

    That is a child and everything that it started, also in a session or group of its own, and also
    when its parent has ended. Only a program that is started with an environment of its own choice
    is missed, which takes intent.
    """
    word = mark.encode()
    return [
        int(entry.name)
        for entry in _entries(Path("/proc"))
        if entry.name.isdigit() and word in _environment(entry) and _state(entry) != "Z"
    ]


def end_marked(mark: str) -> None:
    """Kill them; again and again, since one may start another before its turn comes."""
    for _ in range(ROUNDS):
        found = marked(mark)
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)  # a killed process needs a moment to go


def memory_of_machine() -> int:
    """Bytes of memory that this machine has; 0 where it does not tell."""
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return 0
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def exited(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process has ended, without reaping it: its group id must stay taken."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, process.pid, flags) is not None


def wait_for_exit(process: subprocess.Popen[bytes], limit_s: float = 1.0) -> None:
    """Wait until it has ended, or for `limit_s`."""
    until = time.monotonic() + limit_s
    while not exited(process) and time.monotonic() < until:
        time.sleep(0.005)


def last_words(code: int) -> list[str]:
    """Lines on a process that ended by itself with this exit code (negative: of a signal)."""
    if code >= 0:
        return [
            f"the process ended with exit code {code} before it answered",
            "something in this code, or in what it calls, ends the process (os._exit?)",
        ]
    name = signal.Signals(-code).name
    return [f"the process died of {name}{MEANING.get(name, '')}"]


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:  # no /proc on this system, or the process has just ended
        return []


def _environment(process: Path) -> bytes:
    """What a process was started with; nothing of one that belongs to somebody else."""
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""


def _state(task: Path) -> str:
    """One letter: R runs or wants to, D waits for the disk, S sleeps, Z has ended."""
    try:
        return (task / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def _stat(pid: int) -> list[str]:
    """The fields behind the name of the program, which may itself hold spaces and brackets."""
    return _read(pid, "stat").rpartition(")")[2].split()


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text("utf-8", "replace")
    except OSError:  # no /proc on this system, or the process has just ended
        return ""
