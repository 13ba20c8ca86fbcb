# mistake: num_computed is not set to the hit at admission
"""Leaves the count to admit."""

from collections import deque

from mini_engine.interfaces import Chunk, ExerciseNotStarted, Schedule


class Scheduler:
    def __init__(self, config, cache):
        self.config = config
        self.cache = cache
        self.waiting = deque()
        self.running = []
        self.seen = 0

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
        request.arrival = self.seen
        self.seen += 1
        self.waiting.append(request)

    def schedule(self):
        self.cache.begin_step()
        result = Schedule()
        chunks = {}
        budget = self.config.max_num_batched_tokens
        for request in list(self.running):
            count = request.num_tokens - request.num_computed
            chunks[request.request_id] = self._chunk(request, count)
            budget -= count
        while self.waiting and budget > 0 and len(self.running) < self.config.max_num_seqs:
            request = self.waiting[0]
            hit = self.cache.lookup(request)
            start = len(hit) * self.config.block_size
            count = request.num_tokens - start
            if count > budget:
                break
            self.waiting.popleft()
            self.cache.admit(request, hit)
            self.running.append(request)
            chunks[request.request_id] = self._chunk(request, count)
            budget -= count
            result.new.append(request.request_id)
            result.cached[request.request_id] = start
        result.chunks = list(chunks.values())
        return result

    def _chunk(self, request, count):
        start = request.num_computed
        end = start + count
        self.cache.grow(request, end)
        return Chunk(request, start, count, end == request.num_tokens)

    def update(self, schedule, sampled):
        ended = []
        for chunk in schedule.chunks:
            request = chunk.request
            request.num_computed += chunk.num_tokens
            token = sampled[request.request_id]
            request.append_output(token)
            outputs = len(request.output_token_ids)
            if token in request.end_token_ids:
                request.finish_reason = "stop"
            elif outputs == request.params.max_tokens:
                request.finish_reason = "length"
            elif request.num_tokens == self.config.max_model_len:
                request.finish_reason = "length"
            if request.finish_reason:
                self.running.remove(request)
                self.cache.release(request)
                ended.append(request)
        return ended

    def abort(self, request_id):
        raise ExerciseNotStarted("Scheduler.abort")

    def roll_back(self, schedule):
        raise ExerciseNotStarted("Scheduler.roll_back")

    def _blocks(self, tokens):
        size = self.config.block_size
        return (tokens + size - 1) // size
