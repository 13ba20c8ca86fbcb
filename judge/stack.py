"""Owns reading where a process stood, from what Python's faulthandler printed."""

from __future__ import annotations

import re
from pathlib import Path

from judge.wire import Frame

ENTRY = re.compile(r'\s*File "(.*)", line (\d+) in (.*)')
ESCAPE = re.compile(r"\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U[0-9a-f]{8}")
ON_REQUEST = "Stack (most recent call first):"
LAST_LINE = "in _run_module_as_main\n"  # the outermost call of `python -m judge.child`
FATAL = "Fatal Python error:"


def frames(text: str, folder: Path | None) -> tuple[Frame, ...]:
    """The first stack in `text`, outermost call first; what lies in `folder` is the learner's."""
    found = []
    for line in text.splitlines():
        entry = ENTRY.fullmatch(line)
        if entry is not None:
            found.append(_frame(entry[1], int(entry[2]), entry[3], folder))
        elif found:
            break
    return tuple(reversed(found))


def split(output: str, begin: str) -> tuple[str, str]:
    """What was printed before the words that begin a stack, and what follows them."""
    before, _, after = output.partition(begin)
    return before, after


def _frame(file: str, line: int, function: str, folder: Path | None) -> Frame:
    path = Path(ESCAPE.sub(lambda found: chr(int(found[0][2:], 16)), file))
    own = folder is not None and path.parent == folder
    return Frame(str(path), line, function, _source(path, line) if own else "", own)


def _source(path: Path, number: int) -> str:
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:  # a file that is gone by now has no line to show
        return ""
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""
