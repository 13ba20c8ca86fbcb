"""Owns the known mistakes of `scheduler.abort`: each is wrong in the one way its name says."""

from __future__ import annotations

from judge.mistakes.scheduler_plain import PlainScheduler
from mini_engine.control.request import Request
from mini_engine.interfaces import Schedule


class TokenKept(PlainScheduler):
    def update(self, schedule: Schedule, sampled: dict[str, int]) -> list[Request]:
        ended = super().update(schedule, sampled)
        for chunk in schedule.chunks:
            if chunk.request.request_id in self.gone and chunk.samples:
                chunk.request.append_output(sampled[chunk.request.request_id])
        return ended


class NotSkipped(PlainScheduler):
    def update(self, schedule: Schedule, sampled: dict[str, int]) -> list[Request]:
        self.gone = set()
        return super().update(schedule, sampled)


class NotSkippedReasonSet(NotSkipped):
    """Takes the reason that abort has set for an end that update found."""

    def reason(self, request: Request) -> str | None:
        request.finish_reason = super().reason(request) or request.finish_reason
        return request.finish_reason


class ReleasedInUpdate(PlainScheduler):
    """Who runs keeps its blocks, and its seat, until the step is over."""

    def finish(self, request: Request, reason: str) -> None:
        self.late = getattr(self, "late", [])
        if reason == "abort" and request.block_table:
            request.finish_reason = reason
            self.late.append(request)
        else:
            super().finish(request, reason)

    def update(self, schedule: Schedule, sampled: dict[str, int]) -> list[Request]:
        for request in getattr(self, "late", []):
            self.cache.release(request)
        self.late = []
        return super().update(schedule, sampled)


class RunningOnly(PlainScheduler):
    def abort(self, request_id: str) -> bool:
        if request_id in [r.request_id for r in self.waiting]:
            return False
        return super().abort(request_id)


class WaitingOnly(PlainScheduler):
    def abort(self, request_id: str) -> bool:
        if request_id in [r.request_id for r in self.running]:
            return False
        return super().abort(request_id)


class BlocksKept(PlainScheduler):
    def finish(self, request: Request, reason: str) -> None:
        request.finish_reason = reason
        if reason != "abort":
            super().finish(request, reason)


class AlwaysTrue(PlainScheduler):
    def abort(self, request_id: str) -> bool:
        super().abort(request_id)
        return True


class NoReason(PlainScheduler):
    def finish(self, request: Request, reason: str) -> None:
        super().finish(request, reason)
        if reason == "abort":
            request.finish_reason = None


class RemembersForever(PlainScheduler):
    def schedule(self) -> Schedule:
        gone = self.gone
        made = super().schedule()
        self.gone = gone
        return made


class TakesNames(PlainScheduler):
    def abort(self, request_id: str) -> bool:
        for request in self.running:
            if request.request_id == request_id:
                self.cache.take_back_names(request)
        return super().abort(request_id)


class NamesStay(PlainScheduler):
    def roll_back(self, schedule: Schedule) -> None:
        for chunk in reversed(schedule.chunks):
            if chunk.request.request_id not in self.gone:
                self.running.remove(chunk.request)
                self.put_back(chunk.request)


class CountsAsComputed(PlainScheduler):
    def roll_back(self, schedule: Schedule) -> None:
        for chunk in schedule.chunks:
            chunk.request.num_computed = chunk.start + chunk.num_tokens


class ToTheBack(PlainScheduler):
    def roll_back(self, schedule: Schedule) -> None:
        before = list(self.waiting)
        super().roll_back(schedule)
        self.waiting = before + [r for r in self.waiting if r not in before]


class Reversed(PlainScheduler):
    def roll_back(self, schedule: Schedule) -> None:
        super().roll_back(Schedule(chunks=schedule.chunks[::-1]))


class AbortedComeBack(PlainScheduler):
    def roll_back(self, schedule: Schedule) -> None:
        for chunk in schedule.chunks:
            if chunk.request.request_id in self.gone:
                self.running.append(chunk.request)
        self.gone = set()
        super().roll_back(schedule)


class KeepsTables(PlainScheduler):
    def roll_back(self, schedule: Schedule) -> None:
        self.cache.take_back_names()
        for chunk in reversed(schedule.chunks):
            if chunk.request.request_id not in self.gone:
                self.running.remove(chunk.request)
                chunk.request.num_preemptions += 1
                self.forget(chunk.request)
                self.wait_again(chunk.request)
