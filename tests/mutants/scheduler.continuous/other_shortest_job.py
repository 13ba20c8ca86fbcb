# mistake: none
"""The shortest prompt is admitted first."""

from mini_engine.interfaces import Chunk, Schedule

SLICE = 2


class Scheduler:
    def __init__(self, config, cache):
        self.config = config
        self.cache = cache
        self.everyone = {}  # id -> request
        self.order = []  # of those that run
        self.queue = []
        self.cancelled = set()
        self.count = 0

    @property
    def running(self):
        return list(self.order)

    @property
    def waiting(self):
        return list(self.queue)

    def add(self, request):
        tokens = len(request.prompt_token_ids)
        if request.request_id in self.everyone:
            raise ValueError(f"{request.request_id!r} exists")
        if not tokens:
            raise ValueError("empty prompt")
        if tokens >= self.config.max_model_len:
            raise ValueError(f"{tokens} prompt tokens, at most {self.config.max_model_len} - 1")
        if self.blocks(tokens) > self.config.num_blocks:
            raise ValueError(f"{self.blocks(tokens)} blocks wanted of {self.config.num_blocks}")
        self.count += 1
        request.arrival = self.count
        self.everyone[request.request_id] = request
        self.enqueue(request, len(self.queue))

    def enqueue(self, request, place):
        if self.config.policy == "priority":
            key = (request.priority, request.arrival)
            place = sum((r.priority, r.arrival) < key for r in self.queue)
        self.queue.insert(place, request)
        self.queue.sort(key=lambda r: r.num_tokens)

    def blocks(self, tokens):
        return (tokens - 1) // self.config.block_size + 1

    def schedule(self):
        self.cache.begin_step()
        self.cancelled.clear()
        given, preempted, cached = {}, [], {}
        cap = self.config.long_prefill_token_threshold
        if len(self.everyone) == 1 or not cap:
            cap = self.config.max_num_batched_tokens

        def left():
            return self.config.max_num_batched_tokens - sum(given.values())

        moved = True
        while moved:
            moved = False
            for request in self.running:
                if request not in self.order:
                    continue
                have = given.get(request, 0)
                missing = min(request.num_tokens - request.num_computed, cap) - have
                more = min(missing, SLICE, left())
                if more <= 0:
                    continue
                end = request.num_computed + have + more
                while request in self.order and not self.cache.can_grow(request, end):
                    victim = self.victim()
                    if given.pop(victim, 0):
                        self.cache.take_back_names(victim)
                    preempted.append(victim.request_id)
                    self.send_back(victim)
                if request in self.order:
                    self.cache.grow(request, end)
                    given[request] = have + more
                    moved = True
        starts = {request: request.num_computed for request in given}
        while not preempted and self.queue and left() and self.seats():
            request = self.queue[0]
            hit = self.cache.lookup(request)
            start = len(hit) * self.config.block_size
            more = min(request.num_tokens - start, cap, left())
            cut = start + more < request.num_tokens
            if (cut and not self.config.enable_chunked_prefill) or not self.room(request, hit):
                break
            self.order.append(self.queue.pop(0))
            self.cache.admit(request, hit)
            self.cache.grow(request, start + more)
            request.num_computed = starts[request] = start
            given[request] = more
            cached[request.request_id] = start
        first = [name for name in cached if not self.everyone[name].num_preemptions]
        again = [name for name in cached if name not in first]
        chunks = [Chunk(r, starts[r], n, starts[r] + n == r.num_tokens) for r, n in given.items()]
        return Schedule(chunks, preempted, first, again, cached)

    def seats(self):
        return self.config.max_num_seqs > len(self.order)

    def room(self, request, hit):
        pool = self.cache.pool
        need = self.blocks(request.num_tokens)
        for block in hit:
            need -= pool.ref_count(block) > 0
        if self.order:
            need += self.config.watermark_blocks
        return pool.num_free >= need

    def victim(self):
        chosen = self.order[-1]
        if self.config.policy == "priority":
            for request in self.order:
                if (request.priority, request.arrival) > (chosen.priority, chosen.arrival):
                    chosen = request
        return chosen

    def send_back(self, request):
        self.order.remove(request)
        self.cache.release(request)
        request.num_computed = 0
        request.num_preemptions += 1
        self.enqueue(request, 0)

    def update(self, schedule, sampled):
        over = []
        for chunk in schedule.chunks:
            request = chunk.request
            if request.request_id in self.cancelled:
                continue
            request.num_computed = chunk.start + chunk.num_tokens
            if not chunk.samples:
                continue
            token = sampled[request.request_id]
            request.append_output(token)
            full = self.config.max_model_len
            if token in request.end_token_ids:
                self.end(request, "stop")
            elif request.params.max_tokens <= len(request.output_token_ids):
                self.end(request, "length")
            elif request.num_tokens >= full:
                self.end(request, "length")
            elif self.blocks(request.num_tokens) > self.config.num_blocks:
                self.end(request, "capacity")
            if request.finish_reason:
                over.append(request)
        return over

    def end(self, request, reason):
        del self.everyone[request.request_id]
        for line in (self.order, self.queue):
            if request in line:
                line.remove(request)
        self.cache.release(request)
        request.finish_reason = reason

    def abort(self, request_id):
        request = self.everyone.get(request_id)
        if request is None:
            return False
        self.cancelled.add(request_id)
        self.end(request, "abort")
        return True

    def roll_back(self, schedule):
        self.cache.take_back_names()
        for chunk in schedule.chunks[::-1]:
            if chunk.request.request_id not in self.cancelled:
                self.send_back(chunk.request)
