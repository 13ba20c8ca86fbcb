"""Random workloads through the whole control plane; the shadow model proves each read.

`python -m tests.control.fuzz --workloads 10000 --seed 1` runs many of them; pytest runs a sample
(test_fuzz.py). A workload follows from its seed and number, which a failure prints.
"""

from __future__ import annotations

import argparse
import functools
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from mini_engine.control.prefix_cache import PrefixCache
from mini_engine.engine import LLMEngine
from mini_engine.interfaces import Chunk, Schedule
from mini_engine.parts import EngineParts
from mini_engine.sampling_params import SamplingParams
from mini_engine.shadow import ShadowModel

VOCAB = 3
FAILING_STEPS = 40  # a prompt starts anew when its step fails, so this has to end at some time
HASHES = {"strong": hash, "weak": lambda key: hash(key) % 3, "constant": lambda key: 7}


class StepFailed(RuntimeError):
    """The forward pass failed, as planned."""


@dataclass
class Job:
    """A request of a workload, and when it comes and goes."""

    name: str
    prompt: list[int]
    max_tokens: int
    stop_token_ids: tuple[int, ...]
    priority: int
    salt: str | None
    arrival: int
    abort_at: int | None  # step
    abort_inside: bool  # between schedule and update


@dataclass
class Workload:
    """Options of an engine, its jobs, and the share of steps that fail."""

    options: dict[str, Any]
    hashes: str
    jobs: list[Job]
    failing: float
    rng: random.Random


def make_workload(seed: int, number: int) -> Workload:
    """A workload of small sizes and tight pools."""
    rng = random.Random(f"{seed} {number}")
    block_size, num_blocks = rng.randint(1, 5), rng.randint(2, 24)
    budget = rng.choice([1, 2, 3, 5, 8, 13, 40])
    options: dict[str, Any] = {
        "block_size": block_size,
        "num_blocks": num_blocks,
        "max_model_len": rng.randint(3, num_blocks * block_size + 8),
        "max_num_batched_tokens": budget,
        "max_num_seqs": rng.randint(1, 6),
        "enable_prefix_caching": rng.random() < 0.8,
        "policy": rng.choice(["fcfs", "priority"]),
        "watermark": rng.choice([0.0, 0.0, 0.1, 0.3]),
    }
    if rng.random() < 0.25:
        options["enable_chunked_prefill"] = False
        options["max_num_batched_tokens"] = max(budget, options["max_model_len"])
    elif rng.random() < 0.4:
        options["long_prefill_token_threshold"] = rng.randint(1, 9)
    longest = min(options["max_model_len"], num_blocks * block_size) + 1  # a few are refused
    stem = [rng.randrange(VOCAB) for _ in range(longest)]
    jobs = [_make_job(rng, f"r{i}", stem) for i in range(rng.randint(1, 12))]
    failing = rng.choice([0.0, 0.0, 0.1, 0.3])
    return Workload(options, rng.choice(list(HASHES)), jobs, failing, rng)


def _make_job(rng: random.Random, name: str, stem: list[int]) -> Job:
    length = rng.randint(1, max(1, len(stem) // rng.choice([1, 2, 4])))
    shared = rng.randint(0, length)
    return Job(
        name=name,
        prompt=stem[:shared] + [rng.randrange(VOCAB) for _ in range(length - shared)],
        max_tokens=rng.randint(1, 24),
        stop_token_ids=(0,) if rng.random() < 0.2 else (),
        priority=rng.randint(0, 2),
        salt=rng.choice([None, None, None, "x"]),
        arrival=rng.randint(0, 15),
        abort_at=rng.randint(0, 25) if rng.random() < 0.25 else None,
        abort_inside=rng.random() < 0.5,
    )


def serve_alone(job: Job, options: dict[str, Any]) -> tuple[list[int], str] | None:
    """What a job gets without any engine: (outputs, reason), or None if it has to be refused."""
    slots = options["num_blocks"] * options["block_size"]
    if len(job.prompt) >= options["max_model_len"] or len(job.prompt) > slots:
        return None
    alone = ShadowModel(options["block_size"], VOCAB)
    outputs: list[int] = []
    while True:
        outputs.append(alone.next_token(job.prompt + outputs, job.salt))
        if outputs[-1] in job.stop_token_ids:
            return outputs, "stop"
        if len(outputs) == job.max_tokens:
            return outputs, "length"
        if len(job.prompt) + len(outputs) == options["max_model_len"]:
            return outputs, "length"
        if len(job.prompt) + len(outputs) > slots:
            return outputs, "capacity"


@dataclass
class ShadowRunner:
    """The shadow model, which proves each read; fails and aborts when told to."""

    model: ShadowModel
    engine: LLMEngine | None = None
    fail_after: int | None = None  # chunks that are written before the step fails
    abort: list[str] = field(default_factory=list)

    def run(self, schedule: Schedule) -> dict[str, int]:
        assert self.engine is not None
        self._check_chunks(schedule.chunks)
        if self.fail_after is not None:
            self.model.compute(schedule.chunks[: self.fail_after])
            self.fail_after = None
            raise StepFailed
        sampled = self.model.run(schedule)
        assert not self.model.wrong_reads, self.model.wrong_reads[0]
        for name in self.abort:
            self.engine.abort(name)
        return sampled

    def _check_chunks(self, chunks: list[Chunk]) -> None:
        config = self.engine.config  # type: ignore[union-attr]
        scheduler = self.engine.scheduler  # type: ignore[union-attr]
        names = [chunk.request.request_id for chunk in chunks]
        assert len(set(names)) == len(names), "a request has two chunks"
        total = sum(chunk.num_tokens for chunk in chunks)
        assert total <= config.max_num_batched_tokens, "over the budget"
        assert len(scheduler.running) <= config.max_num_seqs, "more run than may"
        others = [r.request_id for r in scheduler.running if r.request_id not in names]
        assert not others or total == config.max_num_batched_tokens, f"{others} are starved"
        for chunk in chunks:
            request, end = chunk.request, chunk.start + chunk.num_tokens
            assert chunk.num_tokens >= 1, f"{request.request_id} computes nothing"
            assert chunk.start == request.num_computed
            assert end <= request.num_tokens
            assert chunk.samples == (end == request.num_tokens)
            assert chunk.samples or config.enable_chunked_prefill


class Run:
    """One workload on one engine. `seen` counts what happened, so that a test can ask for it."""

    def __init__(
        self, workload: Workload, parts: EngineParts | None = None, *, invariants: bool = True
    ) -> None:
        self.workload, self.invariants = workload, invariants
        self.runner = ShadowRunner(ShadowModel(workload.options["block_size"], VOCAB))
        if parts is None:
            hash_function = HASHES[workload.hashes]
            parts = EngineParts(
                prefix_cache=functools.partial(PrefixCache, hash_function=hash_function)
            )
        self.engine = LLMEngine(parts=parts, runner=self.runner, trace_limit=1, **workload.options)
        self.runner.engine = self.engine
        self.outputs: dict[str, tuple[list[int], str | None]] = {}
        self.aborted: set[str] = set()
        self.seen: Counter[str] = Counter()
        self._num_seen = 0

    def to_end(self) -> Counter[str]:
        """Run the workload and check all that must hold; raises AssertionError if it does not."""
        jobs = self.workload.jobs
        work = sum(len(job.prompt) + job.max_tokens for job in jobs)
        for step in range(60 + 20 * work):
            for job in jobs:
                if job.arrival == step:
                    self._arrive(job)
            self._abort(step)
            self._step(step)
            if step > 25 and not self.engine.has_unfinished:
                break
        assert not self.engine.has_unfinished, "it hangs"
        self._check_end()
        return self.seen

    def _arrive(self, job: Job) -> None:
        params = SamplingParams(job.max_tokens, stop_token_ids=job.stop_token_ids)
        try:
            self.engine.add_request(
                job.prompt, params, request_id=job.name, priority=job.priority, cache_salt=job.salt
            )
        except ValueError:
            self.seen["refused"] += 1
            assert serve_alone(job, self.workload.options) is None, "refused without need"

    def _abort(self, step: int) -> None:
        now = [j for j in self.workload.jobs if j.abort_at == step and j.arrival <= step]
        self.aborted |= {job.name for job in now}
        self.runner.abort = [job.name for job in now if job.abort_inside]
        self.seen["aborted inside a step"] += len(self.runner.abort)
        for job in now:
            if not job.abort_inside:
                output = self.engine.abort(job.name)
                self.seen["aborted"] += output is not None
                self._check()

    def _step(self, step: int) -> None:
        self._check_lookup()
        if step < FAILING_STEPS and self.workload.rng.random() < self.workload.failing:
            self.runner.fail_after = self.workload.rng.randint(0, 3)
        try:
            outputs = self.engine.step()
        except StepFailed:
            self.seen["failed"] += 1
            outputs = []
        self.runner.fail_after = None
        for output in outputs:
            if output.finished:
                self.outputs[output.request_id] = (output.token_ids, output.finish_reason)
                self.seen[output.finish_reason or ""] += 1
        for record in self.engine.trace:  # of the last step that was recorded
            if record.step >= self._num_seen:
                self._num_seen = record.step + 1
                self.seen["preempted"] += len(record.preempted)
                self.seen["hit"] += sum(hit > 0 for hit in record.cached.values())
        self._check()

    def _check(self) -> None:
        if self.invariants:
            self.engine.scheduler.check_invariants()

    def _check_lookup(self) -> None:
        """What the cache remembers of its last lookup must not change what it answers."""
        if self.invariants and self.engine.scheduler.waiting and self.workload.rng.random() < 0.5:
            head, cache = self.engine.scheduler.waiting[0], self.engine.cache
            remembered = cache.lookup(head)
            cache._looked_up = None
            assert remembered == cache.lookup(head), "the kept lookup is out of date"

    def _check_end(self) -> None:
        for job in self.workload.jobs:
            alone = serve_alone(job, self.workload.options)
            if job.name in self.outputs:
                assert self.outputs[job.name] == alone, f"{job.name} got other tokens than alone"
            else:
                assert alone is None or job.name in self.aborted, f"{job.name} got no answer"
        cache = self.engine.cache
        assert sorted(cache.pool.free_block_ids()) == list(range(cache.pool.num_blocks)), "a leak"
        assert cache.num_names <= cache.pool.num_blocks
        assert cache.reset()
        assert cache.num_names == 0


def run_many(seed: int, numbers: range) -> Counter[str]:
    """Run these workloads; returns what happened in all. A failure says how to repeat it."""
    seen: Counter[str] = Counter()
    for number in numbers:
        try:
            seen += Run(make_workload(seed, number)).to_end()
        except BaseException as error:
            error.add_note(f"python -m tests.control.fuzz --seed {seed} --only {number}")
            raise
    return seen


def main() -> None:
    """Run many workloads, or one again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the number of one workload")
    args = parser.parse_args()
    one = None if args.only is None else range(args.only, args.only + 1)
    numbers = one or range(args.workloads)
    start = time.perf_counter()
    seen = run_many(args.seed, numbers)
    print(f"{len(numbers)} workloads of seed {args.seed}: {time.perf_counter() - start:.1f} s")
    print(", ".join(f"{kind} {count}" for kind, count in sorted(seen.items())))


if __name__ == "__main__":
    main()
