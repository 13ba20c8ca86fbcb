# mistake: none
"""Admits and hopes."""

from mini_engine.interfaces import Chunk, Schedule


class Scheduler:
    def __init__(self, config, cache):
        self.config, self.cache = config, cache
        self.waiting, self.running = [], []
        self.number = 0
        self.dropped = []

    def add(self, request):
        size, limit = len(request.prompt_token_ids), self.config.max_model_len
        blocks = -(-size // self.config.block_size)
        names = {r.request_id for r in self.waiting} | {r.request_id for r in self.running}
        problems = [
            (request.request_id in names, f"the id {request.request_id} is in use"),
            (size == 0, "a prompt needs at least one token"),
            (size >= limit, f"{size} tokens of prompt, but max_model_len is {limit}"),
            (blocks > self.config.num_blocks, f"{blocks} > {self.config.num_blocks} blocks"),
        ]
        for wrong, text in problems:
            if wrong:
                raise ValueError(text)
        request.arrival = self.number = self.number + 1
        self.waiting.append(request)
        self._sort()

    def _urgency(self, request):
        return (request.priority, request.arrival)

    def _sort(self):
        if self.config.policy == "priority":
            self.waiting.sort(key=self._urgency)

    def schedule(self):
        self.cache.begin_step()
        self.dropped = []
        step, plan = Schedule(), {}
        self.plan, self.step = plan, step

        for request in sorted(self.running, key=lambda r: r.num_tokens - r.num_computed):
            if request in self.running:
                self._serve(request)
        if not step.preempted:
            while self._admit_one():
                pass
        step.chunks = [
            Chunk(r, r.num_computed, n, r.num_computed + n == r.num_tokens) for r, n in plan.items()
        ]
        return step

    def _left(self):
        return self.config.max_num_batched_tokens - sum(self.plan.values())

    def _size(self, tokens):
        cap = self.config.long_prefill_token_threshold
        if cap and len(self.waiting) + len(self.running) != 1:
            tokens = min(tokens, cap)
        return min(tokens, self._left())

    def _serve(self, request):
        tokens = self._size(request.num_tokens - request.num_computed)
        if tokens == 0:
            return
        while request in self.running:
            if self.cache.can_grow(request, request.num_computed + tokens):
                self.cache.grow(request, request.num_computed + tokens)
                self.plan[request] = tokens
                return
            self._preempt()

    def _preempt(self):
        victim = self.running[-1]
        if self.config.policy == "priority":
            victim = sorted(self.running, key=self._urgency)[-1]
        if victim in self.plan:
            del self.plan[victim]
            self.cache.take_back_names(victim)
        self.step.preempted.append(victim.request_id)
        self._to_the_front(victim)

    def _to_the_front(self, request):
        self.running.remove(request)
        self.cache.release(request)
        request.num_computed = 0
        request.num_preemptions += 1
        self.waiting.insert(0, request)
        self._sort()

    def _admit_one(self):
        if not self.waiting or self._left() <= 0:
            return False
        if len(self.running) >= self.config.max_num_seqs:
            return False
        head = self.waiting[0]
        hit = self.cache.lookup(head)
        known = len(hit) * self.config.block_size
        tokens = self._size(head.num_tokens - known)
        if not self.config.enable_chunked_prefill and known + tokens != head.num_tokens:
            return False
        self.running.append(self.waiting.pop(0))
        if hit:
            self.cache.admit(head, hit)
        head.num_computed = known
        self.cache.grow(head, known + tokens)
        self.plan[head] = tokens
        self.step.cached[head.request_id] = known
        if head.num_preemptions:
            self.step.resumed.append(head.request_id)
        else:
            self.step.new.append(head.request_id)
        return True

    def update(self, schedule, sampled):
        done = []
        for chunk in schedule.chunks:
            request = chunk.request
            if request in self.dropped:
                continue
            request.num_computed += chunk.num_tokens
            if chunk.samples:
                request.append_output(sampled[request.request_id])
                request.finish_reason = self._why(request)
                if request.finish_reason is not None:
                    self.running.remove(request)
                    self.cache.release(request)
                    done.append(request)
        return done

    def _why(self, request):
        if request.token_ids[-1] in request.end_token_ids:
            return "stop"
        if len(request.output_token_ids) == request.params.max_tokens:
            return "length"
        if request.num_tokens == self.config.max_model_len:
            return "length"
        if request.num_tokens > self.config.num_blocks * self.config.block_size:
            return "capacity"
        return None

    def abort(self, request_id):
        found = [r for r in self.waiting + self.running if r.request_id == request_id]
        for request in found:
            (self.running if request in self.running else self.waiting).remove(request)
            self.cache.release(request)
            request.finish_reason = "abort"
            self.dropped.append(request)
        return bool(found)

    def roll_back(self, schedule):
        self.cache.take_back_names()
        for chunk in reversed(schedule.chunks):
            if chunk.request not in self.dropped:
                self._to_the_front(chunk.request)
