"""Owns what the records of a scheduler's run say about each request: who waits, runs, is computed.

Works on plain data, in the judge's process; `scheduler_rules` says which steps are legal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from judge.scheduler_memory import Samples
from judge.wire import Raised
from mini_engine.config import EngineConfig

Lines = tuple[str, ...]


@dataclass
class Seen:
    """A request as the records so far show it."""

    wish: Any
    arrival: int
    computed: int = 0
    outputs: list[int] = field(default_factory=list)
    preemptions: int = 0
    reason: str | None = None

    @property
    def total(self) -> int:
        return len(self.wish["prompt"]) + len(self.outputs)

    @property
    def urgency(self) -> tuple[int, int]:
        return self.wish.get("priority", 0), self.arrival


class Ledger:
    """The requests of a run as far as its records were read, by the promises of the exercises."""

    def __init__(self, payload: Any) -> None:
        self.payload = payload
        self.config = EngineConfig(**payload["options"])
        assert self.config.num_blocks is not None
        assert self.config.max_model_len is not None
        self.num_blocks, self.max_len = self.config.num_blocks, self.config.max_model_len
        self.tokens = Samples(payload)
        self.seen: dict[str, Seen] = {}
        self.waiting: list[str] = []
        self.running: list[str] = []
        self.aborted_now: set[str] = set()
        self.num_arrivals = 0

    # Who comes and goes outside of steps

    def arrivals(self, record: Any, refusals: Any) -> Lines | None:
        """Take in the arrivals of a step; wrong if one was refused, or accepted, without reason."""
        for wish in self.payload["requests"]:
            if wish["step"] != record["step"]:
                continue
            numbers = self._why_refused(wish)
            found = refusals.get(str(wish["number"]))
            name = f"request {wish['id']}, prompt of {len(wish['prompt'])} tokens"
            if numbers is None and found is not None:
                return (f"{name}: add raised {found.type_name}: {found.message}",)
            if numbers is not None:
                problem = self._refusal(name, numbers, found)
                if problem is not None:
                    return problem
                continue
            self.seen[wish["id"]] = Seen(wish, self.num_arrivals)
            self.num_arrivals += 1
            self.waiting.append(wish["id"])
        if self.config.policy == "priority":
            self.waiting.sort(key=self.urgency)
        return None

    def _refusal(self, name: str, numbers: list[str], found: Any) -> Lines | None:
        if not isinstance(found, Raised):
            return f"{name}: can never be served, and add did not refuse it", *numbers[:1]
        if "ValueError" not in found.types:
            return f"{name}: expected ValueError, add raised {found.type_name}", found.message
        missing = [number for number in numbers[1:] if number not in found.message]
        if missing:
            return f"{name}: refused, but the message lacks {missing[0]}", f"got: {found.message}"
        return None

    def _why_refused(self, wish: Any) -> list[str] | None:
        """Why a request can't be served, then the numbers that the message must name; or None."""
        length = len(wish["prompt"])
        if wish["id"] in self.seen and self.seen[wish["id"]].reason is None:
            return ["a request of that id is being served", wish["id"]]
        if length == 0:
            return ["its prompt is empty"]
        if length >= self.max_len:
            why = f"max_model_len is {self.max_len}, prompt and 1 output must fit"
            return [why, str(length), str(self.max_len)]
        if self.blocks(length) > self.num_blocks:
            why = f"it needs {self.blocks(length)} blocks, the pool has {self.num_blocks}"
            return [why, str(self.blocks(length)), str(self.num_blocks)]
        return None

    def aborts(self, done: list[Any], during: bool) -> Lines | None:
        """Take in aborts; `during` the forward pass of the step that is under way."""
        if not during:
            self.aborted_now = set()
        for name, answer in done:
            one = self.seen.get(name)
            alive = one is not None and one.reason is None
            if answer is not alive:
                return (f"abort({name!r}) returned {answer!r}, expected {alive}",)
            if one is not None and alive:
                one.reason = "abort"
                self.aborted_now.add(name)
                for queue in (self.waiting, self.running):
                    if name in queue:
                        queue.remove(name)
        return None

    def reason(self, one: Seen) -> str | None:
        if one.outputs[-1] in one.wish.get("ends", ()):
            return "stop"
        if len(one.outputs) >= one.wish["max_tokens"] or one.total >= self.max_len:
            return "length"
        return "capacity" if self.blocks(one.total) > self.num_blocks else None

    def blocks(self, num_tokens: int) -> int:
        return -(-num_tokens // self.config.block_size)

    def cap(self) -> int:
        alone = len(self.running) + len(self.waiting) == 1
        return 0 if alone else self.config.long_prefill_token_threshold

    def wanted(self, name: str) -> int:
        """The tokens that a running request gets in a step, if the budget allows it."""
        one, cap = self.seen[name], self.cap()
        rest = one.total - one.computed
        return min(rest, cap) if cap else rest

    def victim(self) -> str | None:
        if not self.running:
            return None
        if self.config.policy == "priority":
            return max(self.running, key=self.urgency)
        return self.running[-1]

    def wait_again(self, name: str) -> None:
        self.waiting.insert(0, name)
        if self.config.policy == "priority":
            self.waiting.sort(key=self.urgency)

    def urgency(self, name: str) -> tuple[int, int]:
        one = self.seen[name]
        return one.urgency if self.config.policy == "priority" else (0, one.arrival)
