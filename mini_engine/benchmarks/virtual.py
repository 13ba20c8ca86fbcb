"""Owns load experiments on a pretended clock: the real scheduler, no model, the same in each run.

What takes time is a formula (StepCost), so a chapter can show what a load does to latency in a
moment, and its numbers can be compared. Real clocks are the business of the other benchmarks.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mini_engine.config import require_int
from mini_engine.engine import LLMEngine
from mini_engine.interfaces import Schedule
from mini_engine.sampling_params import SamplingParams

BLOCK_SIZE = 16


@dataclass(frozen=True)
class StepCost:
    """Pretended seconds of a step: `fixed`, and `per_token` for each token it computes."""

    fixed: float = 0.020
    per_token: float = 0.0005

    def __call__(self, num_tokens: int) -> float:
        return self.fixed + self.per_token * num_tokens


@dataclass(frozen=True)
class Job:
    """A request by its sizes: the tokens of its prompt, and those it will generate."""

    prompt: int
    output: int


@dataclass
class Served:
    """When things happened to one job, in seconds: `started` is the start of its first step."""

    job: Job
    arrival: float
    started: float = 0.0
    token_times: list[float] = field(default_factory=list)

    @property
    def queue(self) -> float:
        """Seconds from its arrival to its first step."""
        return self.started - self.arrival

    @property
    def prefill(self) -> float:
        """Seconds from its first step to its first token."""
        return self.token_times[0] - self.started

    @property
    def decode(self) -> float:
        """Seconds from its first token to its last."""
        return self.token_times[-1] - self.token_times[0]

    @property
    def total(self) -> float:
        """Seconds from its arrival to its last token."""
        return self.token_times[-1] - self.arrival


def random_jobs(count: int, seed: int) -> list[Job]:
    """Mostly short prompts, one in five long; 5 to 60 tokens of output."""
    rng = random.Random(seed)
    return [
        Job(
            rng.randint(200, 800) if rng.random() < 0.2 else rng.randint(10, 80), rng.randint(5, 60)
        )
        for _ in range(count)
    ]


def random_arrivals(count: int, rate: float, seed: int) -> list[float]:
    """Moments of a Poisson process: `rate` a second on average, every gap drawn by itself."""
    rng = random.Random(seed)
    moments, now = [], 0.0
    for _ in range(count):
        now += rng.expovariate(rate)
        moments.append(now)
    return moments


class _PretendedRunner:
    """Samples token 0 for every request that samples."""

    def run(self, schedule: Schedule) -> dict[str, int]:
        return {chunk.request.request_id: 0 for chunk in schedule.chunks if chunk.samples}


class _Experiment:
    """An engine without a model, and the pretended clock."""

    def __init__(self, cost: StepCost, options: dict[str, Any]) -> None:
        defaults = {"num_blocks": 4096, "block_size": BLOCK_SIZE, "max_model_len": 4096}
        defaults |= {"enable_prefix_caching": False, "max_num_batched_tokens": 256}
        self.engine = LLMEngine(runner=_PretendedRunner(), trace_limit=1, **(defaults | options))
        self.cost = cost
        self.now = 0.0
        self.served: dict[str, Served] = {}

    def submit(self, job: Job, arrival: float) -> None:
        params = SamplingParams(max_tokens=job.output, ignore_eos=True)
        request_id = self.engine.add_request([0] * job.prompt, params)
        self.served[request_id] = Served(job, arrival)

    def step(self) -> int:
        """One step; the clock moves on. Returns how many requests ended in it."""
        start = self.now
        self.engine.step()
        record = self.engine.trace[-1]
        self.now += self.cost(record.total)
        for request_id in record.new:
            self.served[request_id].started = start
        for request_id in record.sampled:
            self.served[request_id].token_times.append(self.now)
        return len(record.finished)


def serve_at(
    jobs: Sequence[Job], arrivals: Sequence[float], cost: StepCost | None = None, **options: Any
) -> list[Served]:
    """Fixed arrival rate (open loop): every job comes at its own moment, ready or not.

    `options` are the engine's. Returns the jobs in order of arrival. Raises ValueError unless there
    is one arrival per job, in ascending order.
    """
    if len(jobs) != len(arrivals):
        raise ValueError(f"{len(jobs)} jobs but {len(arrivals)} arrivals; give one for each job")
    if list(arrivals) != sorted(arrivals):
        raise ValueError("arrivals must not decrease")
    run = _Experiment(cost or StepCost(), options)
    coming: Iterator[tuple[Job, float]] = iter(zip(jobs, arrivals, strict=True))
    following = next(coming, None)
    while following or run.engine.has_unfinished:
        if following and not run.engine.has_unfinished:
            run.now = max(run.now, following[1])  # nothing to do until the next one comes
        while following and following[1] <= run.now:
            run.submit(*following)
            following = next(coming, None)
        run.step()
    return list(run.served.values())


def serve_with(
    jobs: Sequence[Job], concurrency: int, cost: StepCost | None = None, **options: Any
) -> list[Served]:
    """Fixed concurrency (closed loop): each client sends its next job when its last one ends.

    `options` are the engine's. Returns the jobs in the order in which they were sent.
    """
    require_int("serve_with", "concurrency", concurrency, 1)
    run = _Experiment(cost or StepCost(), options)
    left = iter(jobs)
    free_clients = concurrency
    while True:
        for _ in range(free_clients):
            job = next(left, None)
            if job is not None:
                run.submit(job, run.now)
        if not run.engine.has_unfinished:
            return list(run.served.values())
        free_clients = run.step()
