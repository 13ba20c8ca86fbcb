"""Owns the look at a running process from outside: its CPU time, its state, its memory.

Reads /proc; on a system without it every number is 0 and every process counts as asleep.
"""

from __future__ import annotations

import os
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


def _stat(pid: int) -> list[str]:
    """The fields behind the name of the program, which may itself hold spaces and brackets."""
    return _read(pid, "stat").rpartition(")")[2].split()


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text("utf-8", "replace")
    except OSError:  # no /proc on this system, or the process has just ended
        return ""
