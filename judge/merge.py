"""Owns the three-way merge of a learner's file with a new published version. Never loses a line."""

from __future__ import annotations

import ast
import shutil
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

LIMIT_S = 30


@dataclass(frozen=True)
class Merged:
    """`text` is to replace the learner's file. `conflicts`: places where both were changed, which
    hold the learner's lines.
    """

    text: bytes
    conflicts: int


def have_git() -> bool:
    return shutil.which("git") is not None


def merge(base: bytes, mine: bytes, new: bytes) -> Merged | None:
    """`mine` with the changes from `base` to `new`; where both changed a place, `mine` stays.

    None if the texts can't be merged (no text, or the result would lack a line of the learner's or
    be no Python any more while `mine` is). Needs git, raises RuntimeError if it fails.
    """
    if b"\0" in base + mine + new:
        return None
    _, conflicts = _merge_file(base, mine, new, "--diff3")
    text, _ = _merge_file(base, mine, new, "--ours")
    if lost_lines(base, mine, text) or (_is_python(mine) and not _is_python(text)):
        return None
    return Merged(text, conflicts)


def lost_lines(base: bytes, mine: bytes, text: bytes) -> list[bytes]:
    """Lines that the learner added to `base` and that `text` lacks."""
    added = Counter(mine.splitlines()) - Counter(base.splitlines())
    return sorted((added - Counter(text.splitlines())).elements())


def _merge_file(base: bytes, mine: bytes, new: bytes, how: str) -> tuple[bytes, int]:
    """What `git merge-file -p` prints, and how many conflicts it counts."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, data in (("yours", mine), ("base", base), ("new", new)):
            path = Path(folder, name)
            path.write_bytes(data)
            paths.append(str(path))
        command = ["git", "merge-file", "-p", how, *paths]
        try:
            found = subprocess.run(
                command, capture_output=True, cwd=folder, timeout=LIMIT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RuntimeError(f"git merge-file failed ({error})") from error
    if not 0 <= found.returncode <= 127:  # up to 127 it is the number of conflicts
        reason = found.stderr.decode("utf-8", "replace").strip()
        raise RuntimeError(f"git merge-file failed ({reason or found.returncode})")
    return found.stdout, found.returncode


def _is_python(text: bytes) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True
