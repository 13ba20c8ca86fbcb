# mistake: none
"""An unknown id is an error."""

from dataclasses import dataclass
from itertools import count

from mini_engine.interfaces import Chunk, Schedule

WAITS, RUNS, OVER = "waits", "runs", "over"


@dataclass
class Entry:
    request: object
    key: tuple
    state: str = WAITS
    seat: int = 0


class Scheduler:
    def __init__(self, config, cache):
        self.config = config
        self.cache = cache
        self.table = {}
        self.tickets = count()
        self.fronts = count(-1, -1)

    @property
    def running(self):
        entries = [e for e in self.table.values() if e.state == RUNS]
        return [e.request for e in sorted(entries, key=lambda e: e.seat)]

    @property
    def waiting(self):
        entries = [e for e in self.table.values() if e.state == WAITS]
        return [e.request for e in sorted(entries, key=lambda e: e.key)]

    def add(self, request):
        entry = self.table.get(request.request_id)
        if entry is not None and entry.state != OVER:
            raise ValueError(f"{request.request_id} is taken")
        length = len(request.prompt_token_ids)
        if not 0 < length < self.config.max_model_len:
            raise ValueError(
                f"a prompt of {length} tokens; it must have 1 to {self.config.max_model_len} - 1"
            )
        need, have = self.blocks(length), self.config.num_blocks
        if need > have:
            raise ValueError(f"needs {need} blocks, there are {have}")
        request.arrival = next(self.tickets)
        self.table[request.request_id] = Entry(request, self.key(request, request.arrival))

    def key(self, request, place):
        if self.config.policy == "priority":
            return request.priority, request.arrival
        return 0, place

    def blocks(self, tokens):
        full, rest = divmod(tokens, self.config.block_size)
        return full + bool(rest)

    def schedule(self):
        self.cache.begin_step()
        self.step, self.chunks = Schedule(), {}
        for entry in [e for e in self.table.values() if e.state == OVER]:
            del self.table[entry.request.request_id]
        for request in self.running:
            if self.budget() and self.entry(request).state == RUNS:
                self.continue_with(request)
        while not self.step.preempted and self.admit_head():
            pass
        self.step.chunks = list(self.chunks.values())
        return self.step

    def entry(self, request):
        return self.table[request.request_id]

    def budget(self):
        return self.config.max_num_batched_tokens - sum(c.num_tokens for c in self.chunks.values())

    def share(self, request, start):
        limits = [request.num_tokens - start, self.budget()]
        alive = sum(e.state != OVER for e in self.table.values())
        if self.config.long_prefill_token_threshold and alive > 1:
            limits.append(self.config.long_prefill_token_threshold)
        return min(limits)

    def continue_with(self, request):
        tokens = self.share(request, request.num_computed)
        end = request.num_computed + tokens
        while not self.cache.can_grow(request, end):
            last = self.running[-1]
            if self.config.policy == "priority":
                last = max(self.running, key=lambda r: self.entry(r).key)
            if self.chunks.pop(last.request_id, None):
                self.cache.take_back_names(last)
            self.step.preempted.append(last.request_id)
            self.push_out(last)
            if last is request:
                return
        self.put(request, tokens)

    def put(self, request, tokens):
        start = request.num_computed
        self.cache.grow(request, start + tokens)
        samples = request.num_tokens == start + tokens
        self.chunks[request.request_id] = Chunk(request, start, tokens, samples)

    def push_out(self, request):
        entry = self.entry(request)
        entry.state = WAITS
        entry.key = self.key(request, next(self.fronts))
        self.cache.release(request)
        request.num_computed = 0
        request.num_preemptions += 1

    def admit_head(self):
        waiting, running = self.waiting, self.running
        if not waiting or not self.budget() or len(running) == self.config.max_num_seqs:
            return False
        request = waiting[0]
        hit = self.cache.lookup(request)
        start = self.config.block_size * len(hit)
        tokens = self.share(request, start)
        if start + tokens < request.num_tokens and not self.config.enable_chunked_prefill:
            return False
        free_hits = [b for b in hit if self.cache.pool.ref_count(b) == 0]
        need = self.blocks(request.num_tokens) - len(hit) + len(free_hits)
        if self.cache.pool.num_free < need + (self.config.watermark_blocks if running else 0):
            return False
        entry = self.entry(request)
        entry.state, entry.seat = RUNS, next(self.tickets)
        self.cache.admit(request, hit)
        request.num_computed = start
        self.put(request, tokens)
        self.step.cached[request.request_id] = start
        again = request.num_preemptions > 0
        (self.step.resumed if again else self.step.new).append(request.request_id)
        return True

    def update(self, schedule, sampled):
        ended = []
        for chunk in schedule.chunks:
            request, entry = chunk.request, self.entry(chunk.request)
            if entry.state == OVER:
                continue
            request.num_computed += chunk.num_tokens
            if not chunk.samples:
                continue
            request.append_output(sampled[request.request_id])
            for reason, true in self.ends(request):
                if true:
                    self.close(entry, reason)
                    ended.append(request)
                    break
        return ended

    def ends(self, request):
        yield "stop", request.output_token_ids[-1] in request.end_token_ids
        yield "length", len(request.output_token_ids) >= request.params.max_tokens
        yield "length", request.num_tokens >= self.config.max_model_len
        yield "capacity", self.blocks(request.num_tokens) > self.config.num_blocks

    def close(self, entry, reason):
        entry.state = OVER
        entry.request.finish_reason = reason
        self.cache.release(entry.request)

    def abort(self, request_id):
        entry = self.table.get(request_id)
        if entry is None or entry.state == OVER:
            raise KeyError(request_id)
        self.close(entry, "abort")
        return True

    def roll_back(self, schedule):
        self.cache.take_back_names()
        for chunk in reversed(schedule.chunks):
            if self.entry(chunk.request).state != OVER:
                self.push_out(chunk.request)
