"""Owns running a script of requests through a learner's scheduler. Runs in the child.

There is no model: the sampled token depends on seed, request and its number of tokens only, and a
pretended KV memory (`scheduler_memory`) checks what every chunk would read. No expected value here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judge.api import Context
from judge.execute import attempt
from judge.scheduler_memory import Memory, Samples, WatchedCache
from judge.wire import Raised
from mini_engine.config import EngineConfig
from mini_engine.control.block_pool import BlockPool
from mini_engine.control.request import Request
from mini_engine.interfaces import Chunk, Schedule
from mini_engine.sampling_params import SamplingParams

MOST_STEPS = 400
MOST_EMPTY = 3  # an engine gives up after as many steps without a token


def run_requests(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Run a script to its end. For `execute`.

    payload: "options" of EngineConfig; "requests" (number, id, prompt, max_tokens, step and perhaps
    priority, ends); "aborts" ([step, id, "before" or "during" the forward pass]); "failures"
    (steps whose forward pass fails); "token_seed" and "vocab_size", unless requests have "output".
    With "check" the cache checks its invariants after each step. The answer: a record per step,
    the outputs, what `add` raised, and why it stopped too early.
    """
    return attempt(_Run(parts["Scheduler"], payload).to_the_end)


class _Run:
    def __init__(self, part: Any, payload: Any) -> None:
        self.part, self.payload = part, payload
        self.config = EngineConfig(**payload["options"])
        assert self.config.num_blocks is not None
        self.cache = WatchedCache(
            BlockPool(self.config.num_blocks), self.config.block_size,
            enabled=self.config.enable_prefix_caching,
        )  # fmt: skip
        self.memory = Memory(self.config.block_size)
        self.samples = Samples(payload)
        self.requests: dict[str, Request] = {}
        self.alive: set[str] = set()
        self.refusals: dict[str, Any] = {}
        self.steps: list[dict[str, Any]] = []
        self.stopped: Any = None
        self.scheduler: Any = None

    def to_the_end(self) -> dict[str, Any]:
        self.scheduler = self.part(self.config, self.cache)
        coming = sorted(self.payload["requests"], key=lambda r: r["step"])
        empty = number = 0
        while self.stopped is None and number < MOST_STEPS and (coming or self.alive):
            arriving = [r for r in coming if r["step"] <= number]
            coming = coming[len(arriving) :]
            record = self._step(number, arriving)
            self.steps.append(record)
            empty = 0 if record.get("chunks") or not record["alive"] else empty + 1
            if empty == MOST_EMPTY:
                self.stopped = f"{MOST_EMPTY} steps in a row computed nothing"
            number += 1
        return {
            "steps": self.steps,
            "outputs": {
                name: [list(r.output_token_ids), r.finish_reason, r.num_preemptions]
                for name, r in self.requests.items()
            },
            "refusals": self.refusals,
            "free": self.cache.pool.num_free,
            "stopped": self.stopped,
        }

    def _step(self, number: int, arriving: list[Any]) -> dict[str, Any]:
        record: dict[str, Any] = {"step": number, "arrived": [r["id"] for r in arriving]}
        for wish in arriving:
            self._add(wish)
        record["aborted"] = self._aborts(number, "before")
        record |= {"alive": sorted(self.alive), "free_before": self.cache.pool.num_free}
        record["same_arrival"] = self._same_arrival()
        if self.stopped is not None:
            return record
        self.cache.begin_notes()
        schedule = attempt(self.scheduler.schedule) if self.alive else Schedule()
        record |= {"taken_from": self.cache.taken_from, "dry_for": self.cache.dry_for}
        if isinstance(schedule, Raised):
            self.stopped = schedule
            return record
        problem = _problem(schedule)
        if problem is not None:
            self.stopped = problem
            return record
        record |= self._decided(schedule)
        record["failed"] = number in self.payload.get("failures", [])
        record["bad_reads"] = [] if record["failed"] else self.memory.compute(schedule.chunks)
        sampled = {
            c.request.request_id: self.samples.token(c.request.request_id, c.request.num_tokens)
            for c in schedule.chunks
            if c.samples
        }
        record["aborted_during"] = self._aborts(number, "during")
        if record["failed"]:
            self._stop_if_raised(attempt(self.scheduler.roll_back, schedule))
        else:
            record["finished"] = self._update(schedule, sampled)
        record |= self._state("_end")
        if self.payload.get("check"):
            alive = [self.requests[name] for name in sorted(self.alive)]
            broken = attempt(self.cache.check_invariants, alive)
            record["broken"] = broken.message if isinstance(broken, Raised) else None
        return record

    def _add(self, wish: Any) -> None:
        request = Request(
            wish["id"], list(wish["prompt"]), SamplingParams(wish["max_tokens"]),
            priority=wish.get("priority", 0), end_token_ids=frozenset(wish.get("ends", ())),
        )  # fmt: skip
        found = attempt(self.scheduler.add, request)
        if isinstance(found, Raised):
            self.refusals[str(wish["number"])] = found
        elif wish["id"] not in self.alive:
            self.requests[wish["id"]] = request
            self.alive.add(wish["id"])

    def _same_arrival(self) -> list[str]:
        """Requests whose arrival another one has, too."""
        arrivals = [self.requests[name].arrival for name in self.alive]
        return sorted(n for n in self.alive if arrivals.count(self.requests[n].arrival) > 1)

    def _aborts(self, number: int, moment: str) -> list[list[Any]]:
        done = []
        for step, name, when in self.payload.get("aborts", []):
            if (step, when) == (number, moment) and self.stopped is None:
                found = attempt(self.scheduler.abort, name)
                self._stop_if_raised(found)
                if not isinstance(found, Raised):
                    done.append([name, found])
                self.alive.discard(name)
        return done

    def _decided(self, schedule: Schedule) -> dict[str, Any]:
        """What `schedule` chose, and the state that it left."""
        waiting = list(self.scheduler.waiting)
        head = None
        if waiting:
            hit = self.cache.lookup(waiting[0])
            remaining = waiting[0].num_tokens - len(hit) * self.config.block_size
            head = [self.cache.needed(waiting[0], hit), remaining]
        return {
            "chunks": [
                [c.request.request_id, c.start, c.num_tokens, c.samples] for c in schedule.chunks
            ],
            "preempted": list(schedule.preempted),
            "new": list(schedule.new),
            "resumed": list(schedule.resumed),
            "cached": dict(schedule.cached),
            "began": self.cache.began,
            "admitted": self.cache.admitted,
            "freed": {name: self.cache.freed.get(name) for name in schedule.preempted},
            "head": head,
            **self._state(""),
        }

    def _update(self, schedule: Schedule, sampled: dict[str, int]) -> list[list[Any]]:
        ended = attempt(self.scheduler.update, schedule, sampled)
        self._stop_if_raised(ended)
        if isinstance(ended, Raised):
            return []
        if not isinstance(ended, list) or not all(isinstance(r, Request) for r in ended):
            self.stopped = f"update returned {type(ended).__name__}, expected a list of Requests"
            return []
        self.alive -= {r.request_id for r in ended}
        return [[r.request_id, r.finish_reason] for r in ended]

    def _state(self, suffix: str) -> dict[str, Any]:
        held = {name: list(r.block_table) for name, r in self.requests.items()}
        return {
            f"running{suffix}": [r.request_id for r in self.scheduler.running],
            f"waiting{suffix}": [r.request_id for r in self.scheduler.waiting],
            f"free{suffix}": self.cache.pool.num_free,
            f"held{suffix}": {name: len(table) for name, table in held.items() if table},
            f"used{suffix}": len({block for table in held.values() for block in table}),
            f"totals{suffix}": {n: self.requests[n].num_tokens for n in sorted(self.alive)},
            f"computed{suffix}": {n: self.requests[n].num_computed for n in sorted(self.alive)},
        }

    def _stop_if_raised(self, found: Any) -> None:
        if isinstance(found, Raised) and self.stopped is None:
            self.stopped = found


def _problem(schedule: Any) -> str | None:
    """What is wrong with the form of a schedule, in a sentence; None if nothing is."""
    if not isinstance(schedule, Schedule):
        return f"schedule returned {type(schedule).__name__}, expected a Schedule"
    for chunk in schedule.chunks:
        if not isinstance(chunk, Chunk):
            return f"schedule.chunks holds {type(chunk).__name__}, expected Chunks"
        if type(chunk.start) is not int or type(chunk.num_tokens) is not int:
            return "start and num_tokens of a chunk must be ints"
        if type(chunk.samples) is not bool:
            return f"samples of a chunk must be True or False, got {chunk.samples!r}"
    return None
