"""Owns the decision of each step: which tokens of which requests are computed.

There is no prefill phase and no decode phase. A request has *computed* tokens and a *total* of
known ones, and every step moves computed towards total; a decode is a request with one token to go.
The policy is that of vLLM V1 (`vllm/v1/core/sched/scheduler.py`, `Scheduler.schedule`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mini_engine.config import EngineConfig
from mini_engine.control.request import Request
from mini_engine.control.waiting import WaitingQueue, urgency
from mini_engine.interfaces import BrokenInvariant, Chunk, PrefixCache, Schedule


class Scheduler:
    """Waiting and running requests under one token budget; see interfaces.Scheduler.

    `config.num_blocks` and `config.max_model_len` must be set; the cache's pool is as large.
    """

    def __init__(self, config: EngineConfig, cache: PrefixCache) -> None:
        if config.num_blocks is None or config.max_model_len is None:
            raise ValueError(
                "the scheduler needs num_blocks and max_model_len as numbers, got "
                f"{config.num_blocks} and {config.max_model_len}"
            )
        self.config = config
        self.cache = cache
        self.num_blocks = config.num_blocks
        self.max_model_len = config.max_model_len
        self.waiting = WaitingQueue(config.policy)
        self.running: list[Request] = []
        self._requests: dict[str, Request] = {}
        self._aborted_in_step: set[str] = set()
        self._num_arrivals = 0

    # Requests come and go

    def add(self, request: Request) -> None:
        """Queue a request, or refuse with ValueError one that could never be served."""
        prompt, name = len(request.prompt_token_ids), f"request {request.request_id!r}"
        if request.request_id in self._requests:
            raise ValueError(f"{name} is being served already; ids must be unique")
        if prompt == 0:
            raise ValueError(f"{name} has an empty prompt; at least 1 token is needed")
        if prompt >= self.max_model_len:
            raise ValueError(
                f"{name} has a prompt of {prompt} tokens, max_model_len is {self.max_model_len}; "
                "prompt and at least 1 output must fit"
            )
        needed = self._blocks_for(prompt)
        if needed > self.num_blocks:
            raise ValueError(
                f"{name} has a prompt of {prompt} tokens and needs {needed} blocks, the pool has "
                f"{self.num_blocks}; shorten the prompt or raise num_blocks"
            )
        request.longest = self._longest(request)
        request.arrival = self._num_arrivals
        self._num_arrivals += 1
        self._requests[request.request_id] = request
        self.waiting.push(request)

    def abort(self, request_id: str) -> bool:
        """End a request at once and take its blocks back. False if there is none by that id.

        Between `schedule` and `update` its chunk still runs and its names stay, because another
        request of the same step may share them; the token sampled from it is dropped.
        """
        request = self._requests.get(request_id)
        if request is None:
            return False
        if request in self.running:
            self.running.remove(request)
            self._aborted_in_step.add(request_id)
        else:
            self.waiting.remove(request)
        self._finish(request, "abort")
        return True

    @property
    def has_unfinished(self) -> bool:
        """Whether any request waits or runs."""
        return bool(self._requests)

    # One step

    def schedule(self) -> Schedule:
        """Choose the next step's chunks and give them their blocks: running first, then waiting."""
        self.cache.begin_step()
        self._aborted_in_step.clear()
        step = _Step(budget=self.config.max_num_batched_tokens)
        self._schedule_running(step)
        if not step.schedule.preempted:  # a step that preempted admits nobody
            self._admit_waiting(step)
        return step.schedule

    def _schedule_running(self, step: _Step) -> None:
        running, chunks = self.running, step.schedule.chunks
        cap, block_size = self._cap(), self.config.block_size
        while len(chunks) < len(running) and step.budget > 0:
            request = running[len(chunks)]  # those before it have their chunks
            start = request.num_computed
            num_tokens = remaining = len(request.token_ids) - start
            if remaining > 1:
                num_tokens = min(remaining, cap, step.budget)
            # Most decodes stay inside a block: no block to allocate, none that becomes full.
            inside = num_tokens < -start % block_size
            if inside or self._make_room(request, start + num_tokens, step):
                chunks.append(Chunk(request, start, num_tokens, num_tokens == remaining))
                step.budget -= num_tokens

    def _make_room(self, request: Request, num_tokens: int, step: _Step) -> bool:
        """Give a running request the blocks for its first `num_tokens` tokens.

        Preempts others until they fit. False if the request itself had to go.
        """
        while not self.cache.can_grow(request, num_tokens):
            victim = self._choose_victim()
            self._preempt(victim, step)
            if victim is request:
                return False
        self.cache.grow(request, num_tokens)
        return True

    def _admit_waiting(self, step: _Step) -> None:
        cap = self._cap()
        while self.waiting and step.budget > 0 and len(self.running) < self.config.max_num_seqs:
            request = self.waiting[0]  # nobody overtakes the head of the queue
            hit = self.cache.lookup(request)
            num_hit = len(hit) * self.config.block_size
            remaining = request.num_tokens - num_hit
            num_tokens = min(remaining, cap, step.budget)
            if num_tokens < remaining and not self.config.enable_chunked_prefill:
                break
            if not self._fits(request, hit):
                break
            self.waiting.pop()
            self.cache.admit(request, hit)
            self.cache.grow(request, num_hit + num_tokens)
            request.num_computed = num_hit
            self.running.append(request)
            chunk = Chunk(request, num_hit, num_tokens, num_tokens == remaining)
            step.schedule.chunks.append(chunk)
            step.schedule.cached[request.request_id] = num_hit
            step.budget -= num_tokens
            admitted = step.schedule.resumed if request.num_preemptions else step.schedule.new
            admitted.append(request.request_id)

    def _fits(self, request: Request, hit: list[int]) -> bool:
        """Whether all known tokens would fit, so that admission is not undone a few chunks later.

        A hit block that is free still counts as free, and taking it costs one, hence the term.
        """
        pool = self.cache.pool
        needed = self._blocks_for(request.num_tokens) - len(hit)
        if self.running:
            needed += self.config.watermark_blocks
        if not needed <= pool.num_free < needed + len(hit):
            return needed <= pool.num_free  # no need to count
        return needed + sum(pool.ref_count(block_id) == 0 for block_id in hit) <= pool.num_free

    def _choose_victim(self) -> Request:
        if self.config.policy == "priority":
            return max(self.running, key=urgency)
        return self.running[-1]

    def _preempt(self, victim: Request, step: _Step) -> None:
        """Take everything but the outputs away from a request; it recomputes when it resumes."""
        chunks = step.schedule.chunks
        given = next((chunk for chunk in chunks if chunk.request is victim), None)
        if given is not None:  # only under "priority": it was scheduled before a more urgent one
            chunks.remove(given)
            step.budget += given.num_tokens
            self.cache.take_back_names(victim)
        self.running.remove(victim)
        victim.num_preemptions += 1
        self._wait_again(victim)
        step.schedule.preempted.append(victim.request_id)

    def _wait_again(self, request: Request) -> None:
        self.cache.release(request)
        request.num_computed = 0
        self.waiting.push_preempted(request)

    # After the forward pass

    def update(self, schedule: Schedule, sampled: dict[str, int]) -> list[Request]:
        """Advance the requests of the step and end those that are done, in batch order."""
        finished = []
        aborted = self._aborted_in_step
        for chunk in schedule.chunks:
            request = chunk.request
            if request.request_id in aborted:
                continue
            request.num_computed = chunk.start + chunk.num_tokens
            if not chunk.samples:  # the logits of an unfinished prompt predict a known token
                continue
            token_id = sampled[request.request_id]
            request.append_output(token_id)
            if token_id in request.end_token_ids or len(request.token_ids) >= request.longest:
                self.running.remove(request)
                self._finish(request, self._finish_reason(request))
                finished.append(request)
        return finished

    def _longest(self, request: Request) -> int:
        """The total of tokens at which a request ends at the latest."""
        total = len(request.prompt_token_ids) + request.params.max_tokens
        more_than_fit = self.num_blocks * self.config.block_size + 1
        return min(total, self.max_model_len, more_than_fit)

    def _finish_reason(self, request: Request) -> str:
        if request.output_token_ids[-1] in request.end_token_ids:
            return "stop"
        if len(request.output_token_ids) >= request.params.max_tokens:
            return "length"
        if request.num_tokens >= self.max_model_len:
            return "length"
        return "capacity"  # alone in the pool it would preempt itself for ever

    def roll_back(self, schedule: Schedule) -> None:
        """The step's forward pass failed: what it was to write is not there.

        Its names are taken back, and each of its requests waits again with nothing computed.
        """
        self.cache.take_back_names()
        for chunk in reversed(schedule.chunks):
            request = chunk.request
            if request.request_id not in self._aborted_in_step:
                self.running.remove(request)
                request.num_preemptions += 1
                self._wait_again(request)

    def check_invariants(self) -> None:
        """Raise BrokenInvariant if the bookkeeping of scheduler, cache and pool disagrees."""
        everyone = [*self.running, *self.waiting]
        if len(everyone) != len(self._requests) or set(everyone) != set(self._requests.values()):
            raise BrokenInvariant("a request is in both queues, in none, or in one twice")
        for request in self.waiting:
            if request.block_table or request.num_computed:
                raise BrokenInvariant(f"request {request.request_id} waits and still holds KV")
        if len(self.running) > self.config.max_num_seqs:
            raise BrokenInvariant(
                f"{len(self.running)} run, at most {self.config.max_num_seqs} may"
            )
        check_cache = getattr(self.cache, "check_invariants", None)
        if check_cache is not None:
            check_cache(everyone)

    def _finish(self, request: Request, reason: str) -> None:
        self.cache.release(request)
        del self._requests[request.request_id]
        request.finish_reason = reason

    def _cap(self) -> int:
        """The most tokens of one request in a step; a request alone may use the whole budget."""
        alone = len(self.running) + len(self.waiting) == 1
        threshold = 0 if alone else self.config.long_prefill_token_threshold
        return threshold or self.config.max_num_batched_tokens

    def _blocks_for(self, num_tokens: int) -> int:
        return -(-num_tokens // self.config.block_size)


@dataclass
class _Step:
    """What `schedule` keeps while it decides."""

    budget: int
    schedule: Schedule = field(default_factory=Schedule)
