"""Owns the processes of one run of the judge: shares them between exercises, starts them early.

Importing torch takes longer than most gradings. So the reference has one process with torch for a
whole run, and the learner's process goes on to the next exercise of the same file as long as it is
as good as new: alive, idle, and with nothing left behind (see `surroundings`).
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from judge.reference import Reference
from judge.sandbox import ChildFailed, Source, Worker

Key = tuple[Path | None, bool, str]


class Workers:
    """Processes by what they hold. One grading at a time may use them; all end with `close`."""

    def __init__(self) -> None:
        self._learners: dict[Key, Worker] = {}
        self._references: dict[Key, Worker] = {}

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    def learner(self, source: Source) -> Worker:
        """A process that loads `source` afresh; one that is kept has loaded it by then.

        A process that can't be kept for whatever reason gives way to a new one, so that no verdict
        depends on what was graded before.
        """
        key = (source.file, source.torch, source.device)
        kept = self._learners.pop(key, None)
        if kept is not None and not _goes_on(kept, source):
            kept.close()
            kept = None
        worker = kept or _started(source)
        self._learners[key] = worker
        return worker

    def reference(self, source: Source) -> Reference:
        """The reference parts of `source`: in a process that is kept, or here without torch."""
        if not source.torch:
            return Reference(source)
        key = (None, source.torch, source.device)
        worker = self._references.get(key)
        if worker is None or not worker.idle:
            if worker is not None:
                worker.close()
            worker = self._references[key] = _started(source)
        return Reference(source, worker)

    def end(self, worker: Worker) -> None:
        """End one learner's process; the next exercise gets a new one."""
        worker.close()
        self._learners = {key: kept for key, kept in self._learners.items() if kept is not worker}

    def call_off(self) -> None:
        """End the processes that are still importing: they were started in vain."""
        for known in (self._learners, self._references):
            for key, worker in list(known.items()):
                if worker.info is None:
                    worker.close()
                    del known[key]

    def end_learners(self) -> None:
        """End all processes that hold a learner's code."""
        for worker in self._learners.values():
            worker.close()
        self._learners.clear()

    def close(self) -> None:
        """End every process."""
        self.end_learners()
        for worker in self._references.values():
            worker.close()
        self._references.clear()


def _started(source: Source) -> Worker:
    worker = Worker(source)
    worker.start()
    return worker


def _goes_on(worker: Worker, source: Source) -> bool:
    """Whether a kept process has loaded `source` and is as good as new."""
    if not worker.idle:
        return False
    worker.load(source)
    try:
        return not worker.ready().get("stale")
    except ChildFailed:
        return False
