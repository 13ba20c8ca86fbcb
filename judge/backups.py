"""Owns changing a learner's file without losing a line: dated backups, replacement in one move."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from pathlib import Path

FOLDER = "backups"


class NotChanged(RuntimeError):
    """A learner's file was left as it is, and why: it can't be written, or was saved just now."""


class Backups:
    """The backups of one run of a command: work/backups/DATE_TIME/, made when the first is kept."""

    def __init__(self, work: Path) -> None:
        self.work = work.resolve()
        self.folder: Path | None = None

    def keep(self, path: Path, data: bytes) -> Path:
        """Write `data`, what `path` holds, under its own name; returns where. Overwrites nothing.

        It is on the disk when this returns. Raises NotChanged if it can't be written.
        """
        name = Path(os.path.abspath(path)).relative_to(self.work)
        try:
            copy = self._made() / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            with copy.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise NotChanged(
                f"no backup of {path.name} could be made ({error}), so it was left as it is"
            ) from error
        return copy

    def _made(self) -> Path:
        if self.folder is not None:
            return self.folder
        stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
        base = self.work / FOLDER
        base.mkdir(exist_ok=True)
        number = 1
        while True:
            folder = base / (stamp if number == 1 else f"{stamp}_{number}")
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                self.folder = folder
                return folder
            number += 1


def replace(path: Path, old: bytes | None, new: bytes) -> None:
    """Put `new` in the place of `old`, in one move; an interruption leaves the old file.

    Raises NotChanged if the file doesn't hold `old` any more (None: if it is there), or can't be
    written. A symbolic link stays one.
    """
    try:
        _replace(path.resolve(), old, new)
    except OSError as error:
        raise NotChanged(f"{path.name} could not be written ({error}); it is as it was") from error


def _replace(target: Path, old: bytes | None, new: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    partial = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(new)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, partial)
        else:
            partial.chmod(0o644)
        if (target.read_bytes() if target.exists() else None) != old:
            raise NotChanged(f"{target.name} was saved just now and was left as it is; repeat this")
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
