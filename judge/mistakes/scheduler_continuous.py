"""Owns the known mistakes of `scheduler.continuous`: each is wrong in the one way its name says."""

from __future__ import annotations

import dataclasses

from judge.mistakes.scheduler_plain import PlainScheduler
from mini_engine.control.request import Request
from mini_engine.interfaces import Chunk, Schedule


class Static(PlainScheduler):
    def may_admit(self) -> bool:
        return not self.running


class OneAtATime(PlainScheduler):
    def seat_left(self) -> bool:
        return not self.running


class CapPerStep(PlainScheduler):
    def seat_left(self) -> bool:
        return len(self.made.cached) < self.config.max_num_seqs


class SeatTooMany(PlainScheduler):
    def seat_left(self) -> bool:
        return len(self.running) <= self.config.max_num_seqs


class SeatTooFew(PlainScheduler):
    def seat_left(self) -> bool:
        return len(self.running) < max(1, self.config.max_num_seqs - 1)


class Overtakes(PlainScheduler):
    def admit_waiting(self) -> None:
        for request in list(self.waiting):
            if self.left == 0 or not self.seat_left():
                break
            hit = self.cache.lookup(request)
            start = len(hit) * self.config.block_size
            num = self.length(request, start)
            cut = start + num < request.num_tokens and not self.config.enable_chunked_prefill
            if not cut and self.fits(request, hit):
                self.admit(request, hit, num)


class WaitingFirst(PlainScheduler):
    def serve_running(self) -> None:
        before = list(self.running)
        self.admit_waiting()
        for request in before:
            if self.left > 0:
                self.serve(request)

    def may_admit(self) -> bool:
        return False


class NewestFirst(PlainScheduler):
    def join(self, request: Request) -> None:
        self.waiting.insert(0, request)


class CountsRequests(PlainScheduler):
    def price(self, num: int) -> int:
        return 1


class DecodesAreFree(PlainScheduler):
    def serve_running(self) -> None:
        super().serve_running()
        self.left = self.config.max_num_batched_tokens


class OneTokenMore(PlainScheduler):
    def long_enough(self, request: Request) -> bool:
        outputs = len(request.output_token_ids)
        return outputs > request.params.max_tokens or request.num_tokens >= self.max_model_len


class OneTokenLess(PlainScheduler):
    def long_enough(self, request: Request) -> bool:
        outputs = len(request.output_token_ids) + 1
        return outputs >= request.params.max_tokens or request.num_tokens >= self.max_model_len


class DeafToStop(PlainScheduler):
    def reason(self, request: Request) -> str | None:
        return "length" if self.long_enough(request) else None


class StopDropped(PlainScheduler):
    def finish(self, request: Request, reason: str) -> None:
        super().finish(request, reason)
        if reason == "stop":
            request.output_token_ids.pop()
            request.token_ids.pop()


class LengthFirst(PlainScheduler):
    def reason(self, request: Request) -> str | None:
        return "length" if self.long_enough(request) else super().reason(request)


class NoLimit(PlainScheduler):
    def long_enough(self, request: Request) -> bool:
        return len(request.output_token_ids) >= request.params.max_tokens


class CountsSampled(PlainScheduler):
    def update(self, schedule: Schedule, sampled: dict[str, int]) -> list[Request]:
        ended = super().update(schedule, sampled)
        for chunk in schedule.chunks:
            if chunk.samples:
                chunk.request.num_computed = chunk.request.num_tokens
        return ended


class KeepsBlocks(PlainScheduler):
    def finish(self, request: Request, reason: str) -> None:
        request.finish_reason = reason


class NeverLooks(PlainScheduler):
    def lookup(self, request: Request) -> list[int]:
        return []


class PartOfHit(PlainScheduler):
    def lookup(self, request: Request) -> list[int]:
        return super().lookup(request)[:1]


class CountNotSet(PlainScheduler):
    def admit(self, request: Request, hit: list[int], num: int) -> None:
        self.waiting.remove(request)
        self.cache.admit(request, hit)
        self.running.append(request)
        self.take(request, num)
        self.made.cached[request.request_id] = len(hit) * self.config.block_size
        (self.made.resumed if request.num_preemptions else self.made.new).append(request.request_id)


class CountNotSetAndAdds(PlainScheduler):
    """The chunk starts behind the hit; the count, moved by what was computed, lacks it."""

    def admit(self, request: Request, hit: list[int], num: int) -> None:
        super().admit(request, hit, num)
        request.num_computed = 0

    def advance(self, chunk: Chunk) -> None:
        chunk.request.num_computed += chunk.num_tokens


class CountNotSetNorSamples(CountNotSet):
    """And does not look at `samples` in update."""

    def update(self, schedule: Schedule, sampled: dict[str, int]) -> list[Request]:
        chunks = [dataclasses.replace(chunk, samples=True) for chunk in schedule.chunks]
        return super().update(dataclasses.replace(schedule, chunks=chunks), sampled)


class IgnoresHit(PlainScheduler):
    def admit(self, request: Request, hit: list[int], num: int) -> None:
        super().admit(request, hit, num)
        name = request.request_id
        chunk = self.chunks[name]
        again = type(chunk)(request, 0, chunk.start + chunk.num_tokens, chunk.samples)
        self.chunks[name] = again
        request.num_computed = 0


class AcceptsFullLength(PlainScheduler):
    def refusal(self, request: Request) -> str | None:
        self.max_model_len += 1
        why = super().refusal(request)
        self.max_model_len -= 1
        return why


class AcceptsTooLarge(PlainScheduler):
    def refusal(self, request: Request) -> str | None:
        blocks, self.num_blocks = self.num_blocks, 10**9
        why = super().refusal(request)
        self.num_blocks = blocks
        return why


class AcceptsEmpty(PlainScheduler):
    def refusal(self, request: Request) -> str | None:
        return super().refusal(request) if request.prompt_token_ids else None


class AcceptsTwice(PlainScheduler):
    def refusal(self, request: Request) -> str | None:
        waiting, running = self.waiting, self.running
        self.waiting, self.running = [], []
        why = super().refusal(request)
        self.waiting, self.running = waiting, running
        return why
