"""Random operations on pool, prefix cache and scheduler, with all invariants checked after each."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mini_engine.control.block_pool import BlockPool
from mini_engine.control.prefix_cache import PrefixCache
from mini_engine.control.radix_cache import RadixCache
from mini_engine.control.request import Request
from mini_engine.engine import LLMEngine
from mini_engine.interfaces import OutOfBlocks, Schedule
from mini_engine.parts import EngineParts
from mini_engine.sampling_params import SamplingParams
from mini_engine.shadow import ShadowModel

TOKENS = st.lists(st.integers(0, 1), min_size=1, max_size=14)


class PoolMachine(RuleBasedStateMachine):
    """The pool against a model of it: a list for the order, a dict for the counts."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = BlockPool(6)
        self.free = list(range(6))
        self.counts = dict.fromkeys(range(6), 0)

    @rule(count=st.integers(0, 7))
    def allocate(self, count: int) -> None:
        if count > len(self.free):
            with pytest.raises(OutOfBlocks):
                self.pool.allocate(count)
            return
        taken, self.free = self.free[:count], self.free[count:]
        assert self.pool.allocate(count) == taken
        for block_id in taken:
            self.counts[block_id] = 1

    @rule(block_id=st.integers(0, 5))
    def share(self, block_id: int) -> None:
        self.pool.share(block_id)
        if self.counts[block_id] == 0:
            self.free.remove(block_id)
        self.counts[block_id] += 1

    @rule(block_id=st.integers(0, 5), to_front=st.booleans())
    def free_one(self, block_id: int, to_front: bool) -> None:
        if self.counts[block_id] == 0:
            with pytest.raises(ValueError, match="freed twice"):
                self.pool.free(block_id, to_front=to_front)
            return
        self.pool.free(block_id, to_front=to_front)
        self.counts[block_id] -= 1
        if self.counts[block_id] == 0:
            self.free.insert(0 if to_front else len(self.free), block_id)

    @invariant()
    def agrees(self) -> None:
        assert self.pool.free_block_ids() == self.free
        assert {b: self.pool.ref_count(b) for b in range(6)} == self.counts
        self.pool.check_invariants([[b] for b, n in self.counts.items() for _ in range(n)])


class CacheMachine(RuleBasedStateMachine):
    """Requests come, grow and go; what a lookup returns must hold exactly those tokens."""

    make_cache: type[PrefixCache] | type[RadixCache] = PrefixCache

    def __init__(self) -> None:
        super().__init__()
        self.pool = BlockPool(7)
        self.cache = self.make_cache(self.pool, 2)
        self.alive: list[Request] = []
        self.content: dict[int, tuple[Any, ...]] = {}  # block -> (salt, all tokens up to its end)
        self.number = 0

    @rule(tokens=TOKENS, salt=st.sampled_from([None, "x"]), share=st.floats(0, 1))
    def admit(self, tokens: list[int], salt: str | None, share: float) -> None:
        request = Request(f"r{self.number}", tokens, cache_salt=salt)
        self.number += 1
        before = (self.pool.free_block_ids(), [self.pool.ref_count(b) for b in range(7)])
        hit = self.cache.lookup(request)
        assert before == (self.pool.free_block_ids(), [self.pool.ref_count(b) for b in range(7)])
        assert 2 * len(hit) < len(tokens)
        for index, block_id in enumerate(hit):
            assert self.content[block_id] == (salt, *tokens[: 2 * index + 2])
        upto = max(2 * len(hit) + 1, round(share * len(tokens)))
        self.cache.begin_step()
        self.cache.admit(request, hit)
        if not self.cache.can_grow(request, upto):
            with pytest.raises(OutOfBlocks):
                self.cache.grow(request, upto)
            self.cache.release(request)
            return
        self._grow(request, upto)
        self.alive.append(request)

    def _grow(self, request: Request, upto: int) -> None:
        old = len(request.block_table)
        self.cache.grow(request, upto)
        for block_id in request.block_table[old:]:
            self.content.pop(block_id, None)
        for index in range(upto // 2):
            block_id = request.block_table[index]
            self.content[block_id] = (request.cache_salt, *request.token_ids[: 2 * index + 2])
        request.num_computed = upto

    @precondition(lambda self: self.alive)
    @rule(pick=st.integers(0, 99), more=st.integers(1, 4))
    def grow(self, pick: int, more: int) -> None:
        request = self.alive[pick % len(self.alive)]
        upto = min(request.num_computed + more, request.num_tokens)
        self.cache.begin_step()
        if upto > request.num_computed and self.cache.can_grow(request, upto):
            self._grow(request, upto)

    @precondition(lambda self: self.alive)
    @rule(pick=st.integers(0, 99), token=st.integers(0, 1))
    def append(self, pick: int, token: int) -> None:
        self.alive[pick % len(self.alive)].append_output(token)

    @precondition(lambda self: self.alive)
    @rule(pick=st.integers(0, 99), failed=st.booleans())
    def release(self, pick: int, failed: bool) -> None:
        """Also as after a failed step: the request's young names are taken back first."""
        request = self.alive.pop(pick % len(self.alive))
        young = request.num_named
        if failed:
            self.cache.take_back_names(request)
        self.cache.release(request)
        assert request.block_table == []
        assert young >= 0

    @rule()
    def reset(self) -> None:
        idle = not self.alive
        assert self.cache.reset() == idle
        if idle:
            assert self.cache.num_names == 0

    @invariant()
    def holds(self) -> None:
        self.cache.check_invariants(self.alive)
        assert self.cache.num_names <= 7


class ShadowRunner:
    """The shadow model, which proves each read; fails and aborts when told to."""

    def __init__(self, block_size: int) -> None:
        self.model = ShadowModel(block_size, vocab_size=2)
        self.fail_next = False
        self.abort_next: list[str] = []
        self.engine: LLMEngine | None = None

    def run(self, schedule: Schedule) -> dict[str, int]:
        if self.fail_next:
            self.fail_next = False
            raise RuntimeError("the forward pass failed")
        sampled = self.model.run(schedule)
        assert not self.model.wrong_reads, self.model.wrong_reads[0]
        for request_id in self.abort_next:
            assert self.engine is not None
            self.engine.abort(request_id)
        self.abort_next = []
        return sampled


class EngineMachine(RuleBasedStateMachine):
    """The whole control plane under random arrivals, aborts (also in mid-step) and failed steps."""

    policy = "fcfs"
    parts = EngineParts()

    def __init__(self) -> None:
        super().__init__()
        self.number = 0
        self.runner = ShadowRunner(2)
        self.engine = LLMEngine(
            parts=self.parts,
            runner=self.runner,
            num_blocks=9,
            block_size=2,
            max_model_len=20,
            max_num_batched_tokens=7,
            max_num_seqs=3,
            policy=self.policy,
            long_prefill_token_threshold=5,
            watermark=0.12,
            debug=True,
        )
        self.runner.engine = self.engine
        self.alive: set[str] = set()

    @rule(
        prompt=TOKENS,
        max_tokens=st.integers(1, 6),
        priority=st.integers(0, 2),
        salt=st.sampled_from([None, "x"]),
    )
    def add(self, prompt: list[int], max_tokens: int, priority: int, salt: str | None) -> None:
        name = f"r{self.number}"
        self.number += 1
        self.engine.add_request(
            prompt, SamplingParams(max_tokens), request_id=name, priority=priority, cache_salt=salt
        )
        self.alive.add(name)

    @rule()
    def step(self) -> None:
        for output in self.engine.step():
            if output.finished:
                self.alive.discard(output.request_id)

    @rule()
    def failed_step(self) -> None:
        if not self.alive:
            return
        self.runner.fail_next = True
        with pytest.raises(RuntimeError, match="forward pass failed"):
            self.engine.step()
        self.runner.fail_next = False
        self.runner.abort_next = []

    @precondition(lambda self: self.alive)
    @rule(pick=st.integers(0, 99), during=st.booleans())
    def abort(self, pick: int, during: bool) -> None:
        name = sorted(self.alive)[pick % len(self.alive)]
        if during:
            self.runner.abort_next = [name]
            self.step()
        else:
            assert self.engine.abort(name) is not None
            self.alive.discard(name)
        if during:
            assert name not in self.engine.scheduler._requests
            self.alive.discard(name)

    @invariant()
    def holds(self) -> None:
        self.engine.scheduler.check_invariants()
        assert self.engine.has_unfinished == bool(self.alive)
        for record in self.engine.trace[-1:]:
            assert record.total == 7 or set(record.scheduled) == set(record.running)

    def teardown(self) -> None:
        for _ in range(500):
            if not self.engine.has_unfinished:
                break
            self.engine.step()
        assert not self.engine.has_unfinished
        assert self.engine.cache.pool.num_free == 9


class PriorityEngineMachine(EngineMachine):
    policy = "priority"


class RadixCacheMachine(CacheMachine):
    make_cache = RadixCache


class RadixEngineMachine(EngineMachine):
    policy = "priority"
    parts = EngineParts(prefix_cache=RadixCache)


CACHES = (CacheMachine, RadixCacheMachine)
ENGINES = (EngineMachine, PriorityEngineMachine, RadixEngineMachine)
for machine in (PoolMachine, *CACHES, *ENGINES):
    machine.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)

TestPool = PoolMachine.TestCase
TestCache = CacheMachine.TestCase
TestEngine = EngineMachine.TestCase
TestPriorityEngine = PriorityEngineMachine.TestCase
TestRadixCache = RadixCacheMachine.TestCase
TestRadixEngine = RadixEngineMachine.TestCase
