"""Owns a plain, correct scheduler in small pieces, for the known mistakes to break one of each."""

from __future__ import annotations

from mini_engine.config import EngineConfig
from mini_engine.control.request import Request
from mini_engine.interfaces import Chunk, PrefixCache, Schedule


class PlainScheduler:
    """Does what `mini_engine.control.scheduler` does, and knows nothing of how that is written."""

    def __init__(self, config: EngineConfig, cache: PrefixCache) -> None:
        assert config.num_blocks is not None
        assert config.max_model_len is not None
        self.config, self.cache = config, cache
        self.num_blocks, self.max_model_len = config.num_blocks, config.max_model_len
        self.waiting: list[Request] = []
        self.running: list[Request] = []
        self.gone: set[str] = set()  # aborted since `schedule`
        self.arrivals = 0
        self.left = 0
        self.chunks: dict[str, Chunk] = {}
        self.made = Schedule()

    # Requests come and go

    def add(self, request: Request) -> None:
        why = self.refusal(request)
        if why is not None:
            raise ValueError(f"{request.request_id}: {why}")
        request.arrival = self.arrivals
        self.arrivals += 1
        self.join(request)

    def refusal(self, request: Request) -> str | None:
        length = len(request.prompt_token_ids)
        if request.request_id in [r.request_id for r in (*self.waiting, *self.running)]:
            return f"{request.request_id} is there already"
        if length == 0:
            return "empty"
        if length >= self.max_model_len:
            return f"{length} tokens of {self.max_model_len}"
        if self.blocks(length) > self.num_blocks:
            return f"{self.blocks(length)} blocks of {self.num_blocks}"
        return None

    def join(self, request: Request) -> None:
        self.waiting.append(request)
        self.sort()

    def sort(self) -> None:
        if self.config.policy == "priority":
            self.waiting.sort(key=self.urgency)

    def urgency(self, request: Request) -> tuple[int, int]:
        return request.priority, request.arrival

    def abort(self, request_id: str) -> bool:
        for request in (*self.waiting, *self.running):
            if request.request_id == request_id:
                if request in self.running:
                    self.running.remove(request)
                    self.gone.add(request_id)
                else:
                    self.waiting.remove(request)
                self.finish(request, "abort")
                return True
        return False

    # One step

    def schedule(self) -> Schedule:
        self.cache.begin_step()
        self.gone = set()
        self.left = self.config.max_num_batched_tokens
        self.chunks, self.made = {}, Schedule()
        self.serve_running()
        if self.may_admit():
            self.admit_waiting()
        self.made.chunks = list(self.chunks.values())
        return self.made

    def serve_running(self) -> None:
        for request in list(self.running):
            if self.left > 0 and request in self.running:
                self.serve(request)

    def serve(self, request: Request) -> None:
        num = self.length(request, request.num_computed)
        while not self.can_grow(request, request.num_computed + num):
            victim = self.victim(request)
            self.preempt(victim)
            if victim is request:
                return
        self.take(request, num)

    def can_grow(self, request: Request, num_tokens: int) -> bool:
        return self.cache.can_grow(request, num_tokens)

    def length(self, request: Request, start: int) -> int:
        cap = self.config.long_prefill_token_threshold
        alone = len(self.waiting) + len(self.running) == 1
        wanted = request.num_tokens - start
        return min(wanted, self.left, cap if cap and not alone else wanted)

    def take(self, request: Request, num: int) -> None:
        start = request.num_computed
        self.cache.grow(request, start + num)
        self.chunks[request.request_id] = Chunk(
            request, start, num, self.samples(request, start + num)
        )
        self.left -= self.price(num)

    def samples(self, request: Request, end: int) -> bool:
        return end == request.num_tokens

    def price(self, num: int) -> int:
        return num

    def may_admit(self) -> bool:
        return not self.made.preempted

    def seat_left(self) -> bool:
        return len(self.running) < self.config.max_num_seqs

    def admit_waiting(self) -> None:
        while self.waiting and self.left > 0 and self.seat_left():
            request = self.waiting[0]
            hit = self.lookup(request)
            start = len(hit) * self.config.block_size
            num = self.length(request, start)
            whole = start + num == request.num_tokens
            if not (whole or self.config.enable_chunked_prefill) or not self.fits(request, hit):
                break
            self.admit(request, hit, num)

    def admit(self, request: Request, hit: list[int], num: int) -> None:
        self.waiting.remove(request)
        self.cache.admit(request, hit)
        request.num_computed = len(hit) * self.config.block_size
        self.running.append(request)
        self.take(request, num)
        self.made.cached[request.request_id] = request.num_computed
        (self.made.resumed if request.num_preemptions else self.made.new).append(request.request_id)

    def lookup(self, request: Request) -> list[int]:
        return self.cache.lookup(request)

    def fits(self, request: Request, hit: list[int]) -> bool:
        pool = self.cache.pool
        needed = self.reserved(request) - len(hit) + sum(pool.ref_count(b) == 0 for b in hit)
        return needed + (self.config.watermark_blocks if self.running else 0) <= pool.num_free

    def reserved(self, request: Request) -> int:
        return self.blocks(request.num_tokens)

    # Preemption

    def victim(self, request: Request) -> Request:
        if self.config.policy == "priority":
            return max(self.running, key=self.urgency)
        return self.running[-1]

    def preempt(self, victim: Request) -> None:
        self.unschedule(victim)
        self.running.remove(victim)
        self.made.preempted.append(victim.request_id)
        self.put_back(victim)

    def unschedule(self, victim: Request) -> None:
        chunk = self.chunks.pop(victim.request_id, None)
        if chunk is not None:
            self.left += chunk.num_tokens
            self.cache.take_back_names(victim)

    def put_back(self, victim: Request) -> None:
        victim.num_preemptions += 1
        self.cache.release(victim)
        self.forget(victim)
        self.wait_again(victim)

    def forget(self, victim: Request) -> None:
        victim.num_computed = 0

    def wait_again(self, victim: Request) -> None:
        self.waiting.insert(0, victim)
        self.sort()

    # After the forward pass

    def update(self, schedule: Schedule, sampled: dict[str, int]) -> list[Request]:
        ended = []
        for chunk in schedule.chunks:
            request = chunk.request
            if request.request_id in self.gone:
                continue
            self.advance(chunk)
            if not chunk.samples:
                continue
            request.append_output(sampled[request.request_id])
            reason = self.reason(request)
            if reason is not None:
                self.running.remove(request)
                self.finish(request, reason)
                ended.append(request)
        return ended

    def advance(self, chunk: Chunk) -> None:
        chunk.request.num_computed = chunk.start + chunk.num_tokens

    def reason(self, request: Request) -> str | None:
        if request.output_token_ids[-1] in request.end_token_ids:
            return "stop"
        if self.long_enough(request):
            return "length"
        return "capacity" if self.blocks(request.num_tokens) > self.num_blocks else None

    def long_enough(self, request: Request) -> bool:
        outputs = len(request.output_token_ids)
        return outputs >= request.params.max_tokens or request.num_tokens >= self.max_model_len

    def roll_back(self, schedule: Schedule) -> None:
        self.cache.take_back_names()
        for chunk in reversed(schedule.chunks):
            if chunk.request.request_id not in self.gone:
                self.running.remove(chunk.request)
                self.put_back(chunk.request)

    def finish(self, request: Request, reason: str) -> None:
        self.cache.release(request)
        request.finish_reason = reason

    def blocks(self, num_tokens: int) -> int:
        return -(-num_tokens // self.config.block_size)
