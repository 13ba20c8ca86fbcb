# mistake: add gives no arrival
"""Leaves arrival at 0."""

from collections import deque

from mini_engine.interfaces import Chunk, Schedule


class Scheduler:
    def __init__(self, config, cache):
        self.config = config
        self.cache = cache
        self.waiting = deque()
        self.running = []
        self.seen = 0
        self.aborted = set()

    def add(self, request):
        n = len(request.prompt_token_ids)
        if any(r.request_id == request.request_id for r in [*self.waiting, *self.running]):
            raise ValueError(f"{request.request_id} is already here")
        if n == 0:
            raise ValueError("the prompt is empty")
        if n >= self.config.max_model_len:
            raise ValueError(f"prompt of {n}, max_model_len {self.config.max_model_len}")
        if self._blocks(n) > self.config.num_blocks:
            raise ValueError(f"{self._blocks(n)} blocks, there are {self.config.num_blocks}")
        self.waiting.append(request)
        self._order()

    def schedule(self):
        self.cache.begin_step()
        self.aborted = set()
        result = Schedule()
        chunks = {}
        budget = self.config.max_num_batched_tokens
        for request in list(self.running):
            if budget == 0:
                break
            if request not in self.running:
                continue
            count = self._count(request.num_tokens - request.num_computed, budget)
            while not self.cache.can_grow(request, request.num_computed + count):
                victim = self._victim()
                if victim.request_id in chunks:
                    budget += chunks.pop(victim.request_id).num_tokens
                    self.cache.take_back_names(victim)
                self.running.remove(victim)
                self._requeue(victim)
                result.preempted.append(victim.request_id)
                if victim is request:
                    break
            if request not in self.running:
                continue
            chunks[request.request_id] = self._chunk(request, count)
            budget -= count
        while self.waiting and budget > 0 and len(self.running) < self.config.max_num_seqs:
            if result.preempted:
                break
            request = self.waiting[0]
            hit = self.cache.lookup(request)
            start = len(hit) * self.config.block_size
            missing = request.num_tokens - start
            count = self._count(missing, budget)
            if count < missing and not self.config.enable_chunked_prefill:
                break
            if not self._fits(request, hit):
                break
            self.waiting.popleft()
            self.cache.admit(request, hit)
            request.num_computed = start
            self.running.append(request)
            chunks[request.request_id] = self._chunk(request, count)
            budget -= count
            target = result.resumed if request.num_preemptions else result.new
            target.append(request.request_id)
            result.cached[request.request_id] = start
        result.chunks = list(chunks.values())
        return result

    def _count(self, missing, budget):
        cap = self.config.long_prefill_token_threshold
        if cap > 0 and len(self.waiting) + len(self.running) > 1:
            missing = min(missing, cap)
        return min(missing, budget)

    def _chunk(self, request, count):
        start = request.num_computed
        end = start + count
        self.cache.grow(request, end)
        return Chunk(request, start, count, end == request.num_tokens)

    def _fits(self, request, hit):
        pool = self.cache.pool
        need = self._blocks(request.num_tokens) - len(hit)
        need += len([b for b in hit if pool.ref_count(b) == 0])
        if self.running:
            need += self.config.watermark_blocks
        return need <= pool.num_free

    def _victim(self):
        if self.config.policy == "priority":
            return max(self.running, key=lambda r: (r.priority, r.arrival))
        return self.running[-1]

    def _requeue(self, request):
        self.cache.release(request)
        request.num_computed = 0
        request.num_preemptions += 1
        self.waiting.appendleft(request)
        self._order()

    def _order(self):
        if self.config.policy == "priority":
            self.waiting = deque(sorted(self.waiting, key=lambda r: (r.priority, r.arrival)))

    def update(self, schedule, sampled):
        ended = []
        for chunk in schedule.chunks:
            request = chunk.request
            if request.request_id in self.aborted:
                continue
            request.num_computed += chunk.num_tokens
            if not chunk.samples:
                continue
            token = sampled[request.request_id]
            request.append_output(token)
            outputs = len(request.output_token_ids)
            if token in request.end_token_ids:
                request.finish_reason = "stop"
            elif outputs == request.params.max_tokens:
                request.finish_reason = "length"
            elif request.num_tokens == self.config.max_model_len:
                request.finish_reason = "length"
            elif self._blocks(request.num_tokens) > self.config.num_blocks:
                request.finish_reason = "capacity"
            if request.finish_reason:
                self.running.remove(request)
                self.cache.release(request)
                ended.append(request)
        return ended

    def abort(self, request_id):
        for queue in (self.waiting, self.running):
            for request in queue:
                if request.request_id == request_id:
                    queue.remove(request)
                    self.cache.release(request)
                    request.finish_reason = "abort"
                    self.aborted.add(request_id)
                    return True
        return False

    def roll_back(self, schedule):
        self.cache.take_back_names()
        for chunk in schedule.chunks[::-1]:
            if chunk.request.request_id not in self.aborted:
                self.running.remove(chunk.request)
                self._requeue(chunk.request)

    def _blocks(self, tokens):
        size = self.config.block_size
        return (tokens + size - 1) // size
