"""Owns the making of the trace: watches the engine's steps and writes StepRecords."""

from __future__ import annotations

import dataclasses
import time
from collections import deque

from mini_engine.control.request import Request
from mini_engine.interfaces import Schedule, Scheduler
from mini_engine.trace import StepRecord, StepTimes


class Recorder:
    """Turns each step into one StepRecord; keeps the last `limit` of them (None: all)."""

    def __init__(self, limit: int | None) -> None:
        self.records: deque[StepRecord] = deque(maxlen=limit)
        self._made_at = time.perf_counter()
        self._num_steps = 0
        self._arrived: list[str] = []
        self._aborted: list[str] = []
        self._marks: list[float] = []
        self._record = StepRecord(step=0)

    def arrived(self, request_id: str) -> None:
        """A request was added."""
        self._arrived.append(request_id)

    def aborted(self, request_id: str) -> None:
        """A request was aborted."""
        self._aborted.append(request_id)

    def mark(self) -> None:
        """A border between parts of the step: its start, after schedule, after run, its end."""
        self._marks.append(time.perf_counter() - self._made_at)

    def scheduled(self, schedule: Schedule, scheduler: Scheduler, free_blocks: int) -> None:
        """Note the state that `schedule` left."""
        chunks = schedule.chunks
        self._record = StepRecord(
            step=self._num_steps,
            arrived=self._arrived,
            aborted=self._aborted,
            scheduled={c.request.request_id: c.num_tokens for c in chunks},
            total=sum(c.num_tokens for c in chunks),
            preempted=list(schedule.preempted),
            new=list(schedule.new),
            resumed=list(schedule.resumed),
            running=[r.request_id for r in scheduler.running],
            waiting=[r.request_id for r in scheduler.waiting],
            computed={c.request.request_id: c.start for c in chunks},
            cached=dict(schedule.cached),
            block_tables={c.request.request_id: list(c.request.block_table) for c in chunks},
            free_blocks=free_blocks,
        )
        self._arrived, self._aborted = [], []

    def finished(
        self,
        sampled: dict[str, int],
        ended: list[Request],
        scheduler: Scheduler,
        free_blocks: int,
        graph_bucket: int | None = None,
    ) -> None:
        """Complete the record with what the step left, and how it ran."""
        start, after_schedule, after_run, end = self._marks
        times = StepTimes(
            start, after_schedule - start, after_run - after_schedule, end - after_run, end
        )
        self.records.append(
            dataclasses.replace(
                self._record,
                sampled=dict(sampled),
                finished={r.request_id: r.finish_reason or "" for r in ended},
                running_end=[r.request_id for r in scheduler.running],
                free_blocks_end=free_blocks,
                graph_bucket=graph_bucket,
                times=times,
            )
        )
        self.dropped()

    def dropped(self) -> None:
        """The step is over, recorded or (if it failed) not."""
        self._num_steps += 1
        self._marks = []
