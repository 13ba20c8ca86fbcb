"""Owns the look at a process from outside: CPU time, state, memory, what it started, how it ended.

Reads /proc; on a system without it every number is 0 and every process counts as asleep.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path


def cpu_seconds(pid: int) -> float:
    """User and system time so far."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def state(pid: int) -> str:
    """One letter: R runs or wants to, S sleeps, Z has ended."""
    return (_stat(pid) or ["S"])[0]


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


def session_size(session: int) -> int:
    """Processes of one session: a child and everything that it started, unless that left it."""
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    return sum(_stat(pid)[3:4] == [str(session)] for pid in pids)


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


def last_words(code: int, output: str) -> list[str]:
    """Lines on a process that ended by itself with this exit code (negative: of a signal)."""
    if code >= 0:
        return [
            f"the process ended with exit code {code} before it answered",
            "something in this code, or in what it calls, ends the process (os._exit?)",
        ]
    reason = " (out of CPU time)" if -code == signal.SIGXCPU else ""
    lines = [f"the process died of {signal.Signals(-code).name}{reason}"]
    _, found, rest = output.partition("Fatal Python error:")  # what faulthandler printed
    places = [line.strip() for line in rest.splitlines() if line.strip().startswith("File ")]
    return lines + (places[:3] if found else [])


def _stat(pid: int) -> list[str]:
    """The fields behind the name of the program, which may itself hold spaces and brackets."""
    return _read(pid, "stat").rpartition(")")[2].split()


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text("utf-8", "replace")
    except OSError:  # no /proc on this system, or the process has just ended
        return ""
