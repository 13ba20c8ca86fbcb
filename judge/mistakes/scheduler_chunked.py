"""Owns the known mistakes of `scheduler.chunked`: each is wrong in the one way its name says."""

from __future__ import annotations

import dataclasses

from judge.mistakes.scheduler_continuous import WaitingFirst
from judge.mistakes.scheduler_plain import PlainScheduler
from mini_engine.control.request import Request
from mini_engine.interfaces import Schedule


class AlwaysSamples(PlainScheduler):
    def samples(self, request: Request, end: int) -> bool:
        return True


class NeverCuts(PlainScheduler):
    def admit(self, request: Request, hit: list[int], num: int) -> None:
        if len(hit) * self.config.block_size + num == request.num_tokens:
            super().admit(request, hit, num)

    def seat_left(self) -> bool:
        if not super().seat_left() or not self.waiting:
            return False
        request = self.waiting[0]
        start = len(self.cache.lookup(request)) * self.config.block_size
        return start + self.length(request, start) == request.num_tokens


class WholeOverBudget(PlainScheduler):
    def length(self, request: Request, start: int) -> int:
        left, self.left = self.left, 10**9
        num = super().length(request, start)
        self.left = left
        return num


class PromptsFirst(WaitingFirst):
    """The same mistake; here a long prompt leaves nothing for the decodes."""


class OnePrompt(PlainScheduler):
    def seat_left(self) -> bool:
        unfinished = any(
            not chunk.samples or chunk.num_tokens > 1 for chunk in self.chunks.values()
        )
        return super().seat_left() and not unfinished


class ThresholdAtAdmission(PlainScheduler):
    def serve(self, request: Request) -> None:
        config = self.config
        self.config = dataclasses.replace(config, long_prefill_token_threshold=0)
        super().serve(request)
        self.config = config


class NoThreshold(PlainScheduler):
    def length(self, request: Request, start: int) -> int:
        return min(request.num_tokens - start, self.left)


class ThresholdAlways(PlainScheduler):
    def length(self, request: Request, start: int) -> int:
        cap = self.config.long_prefill_token_threshold or self.left
        return min(request.num_tokens - start, self.left, cap)


class ForgetsWaiting(PlainScheduler):
    def length(self, request: Request, start: int) -> int:
        waiting, self.waiting = self.waiting, []
        if request not in self.running:
            self.waiting = [request]
        num = super().length(request, start)
        self.waiting = waiting
        return num


class AloneAmongRunning(PlainScheduler):
    """Counts those that run; the one that is admitted stands among them by then."""

    def length(self, request: Request, start: int) -> int:
        wanted = min(request.num_tokens - start, self.left)
        cap = self.config.long_prefill_token_threshold
        return min(wanted, cap) if cap and len(self.running) > 1 else wanted


class GrowsForAll(PlainScheduler):
    def take(self, request: Request, num: int) -> None:
        self.cache.grow(request, request.num_tokens)
        super().take(request, num)


class CutsAlways(PlainScheduler):
    def admit_waiting(self) -> None:
        config = self.config
        self.config = dataclasses.replace(config, enable_chunked_prefill=True)
        super().admit_waiting()
        self.config = config


class StartsAgain(PlainScheduler):
    def update(self, schedule: Schedule, sampled: dict[str, int]) -> list[Request]:
        ended = super().update(schedule, sampled)
        for chunk in schedule.chunks:
            if not chunk.samples:
                chunk.request.num_computed = chunk.start
        return ended
