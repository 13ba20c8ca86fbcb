"""Owns the known mistakes of `scheduler.preempt`: each is wrong in the one way its name says."""

from __future__ import annotations

import dataclasses

from judge.mistakes.scheduler_plain import PlainScheduler
from mini_engine.control.request import Request


class ComputedKept(PlainScheduler):
    def forget(self, victim: Request) -> None:
        self.kept = getattr(self, "kept", {})
        self.kept[victim.request_id] = victim.num_computed

    def admit(self, request: Request, hit: list[int], num: int) -> None:
        kept = getattr(self, "kept", {}).get(request.request_id)
        if kept is None:
            super().admit(request, hit, num)
            return
        super().admit(request, hit, request.num_tokens - len(hit) * self.config.block_size)


class CountKept(PlainScheduler):
    """The count stays while it waits; admission sets it."""

    def forget(self, victim: Request) -> None:
        """Nothing is forgotten."""


class FirstGoes(PlainScheduler):
    def victim(self, request: Request) -> Request:
        return self.running[0]


class FirstGoesChunkStays(FirstGoes):
    """Without a thought of the chunk that it has already."""

    def unschedule(self, victim: Request) -> None:
        """Nothing is taken out of the step."""


class ItselfGoes(PlainScheduler):
    def victim(self, request: Request) -> Request:
        return request


class AsksForAll(PlainScheduler):
    def can_grow(self, request: Request, num_tokens: int) -> bool:
        return self.cache.can_grow(request, request.num_tokens)


class ToTheBack(PlainScheduler):
    def wait_again(self, victim: Request) -> None:
        self.waiting.append(victim)


class OutputsLost(PlainScheduler):
    def forget(self, victim: Request) -> None:
        victim.num_computed = 0
        victim.output_token_ids.clear()
        del victim.token_ids[len(victim.prompt_token_ids) :]


class OutputsCleared(PlainScheduler):
    """Clears the list only; token_ids keeps them."""

    def forget(self, victim: Request) -> None:
        victim.num_computed = 0
        victim.output_token_ids.clear()


class VictimsInOrder(PlainScheduler):
    def serve_running(self) -> None:
        self.out: list[Request] = []
        super().serve_running()
        self.waiting[:0] = self.out

    def wait_again(self, victim: Request) -> None:
        self.out.append(victim)


class BlocksKept(PlainScheduler):
    def put_back(self, victim: Request) -> None:
        victim.num_preemptions += 1
        self.forget(victim)
        self.wait_again(victim)


class NoReservation(PlainScheduler):
    def fits(self, request: Request, hit: list[int]) -> bool:
        start = len(hit) * self.config.block_size
        self.chunk_end = start + self.length(request, start)
        return super().fits(request, hit)

    def reserved(self, request: Request) -> int:
        return self.blocks(self.chunk_end)


class FreeHitsForNothing(PlainScheduler):
    def fits(self, request: Request, hit: list[int]) -> bool:
        spare = self.config.watermark_blocks if self.running else 0
        needed = self.blocks(request.num_tokens) - len(hit)
        return needed + spare <= self.cache.pool.num_free


class HitsPaidTwice(PlainScheduler):
    def fits(self, request: Request, hit: list[int]) -> bool:
        return super().fits(request, [])


class NoWatermark(PlainScheduler):
    def fits(self, request: Request, hit: list[int]) -> bool:
        config = self.config
        self.config = dataclasses.replace(config, watermark=0.0)
        fits = super().fits(request, hit)
        self.config = config
        return fits


class WatermarkAlways(PlainScheduler):
    def fits(self, request: Request, hit: list[int]) -> bool:
        running = self.running
        self.running = [request]
        fits = super().fits(request, hit)
        self.running = running
        return fits


class OneMore(PlainScheduler):
    def preempt(self, victim: Request) -> None:
        super().preempt(victim)
        if len(self.running) > 1 and self.running[-1].request_id not in self.chunks:
            super().preempt(self.running[-1])


class SkipsOne(PlainScheduler):
    def serve_running(self) -> None:
        index = 0
        while index < len(self.running) and self.left > 0:
            before = len(self.running)
            self.serve(self.running[index])
            index += 1 + (before - len(self.running))


class NoCapacity(PlainScheduler):
    def reason(self, request: Request) -> str | None:
        reason = super().reason(request)
        return None if reason == "capacity" else reason


class CapacityEarly(PlainScheduler):
    def reason(self, request: Request) -> str | None:
        full = self.blocks(request.num_tokens + 1) > self.num_blocks
        return super().reason(request) or ("capacity" if full else None)


class PassEnds(PlainScheduler):
    def serve_running(self) -> None:
        for request in list(self.running):
            if self.left > 0 and not self.made.preempted:
                self.serve(request)


class ResumedIsNew(PlainScheduler):
    def admit(self, request: Request, hit: list[int], num: int) -> None:
        super().admit(request, hit, num)
        self.made.new += self.made.resumed
        self.made.resumed = []
