"""Owns the scripts of calls that `prefix-cache.cache` is graded with. Runs in the judge's process.

`Script` writes calls down; `Played` also makes them on the reference, so that random scripts stay
within what the engine does.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from judge.api import Case
from judge.exercises.prefix_cache_script import Driver
from mini_engine.control.prefix_cache import PrefixCache

Ids = Sequence[int]


class Script:
    """Calls on a cache over a pool of `num_blocks`, blocks of `block_size` tokens."""

    def __init__(self, num_blocks: int, block_size: int = 4, enabled: bool = True) -> None:
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.enabled = enabled
        self.calls: list[list[Any]] = []

    def case(self, label: str) -> Case:
        payload = {"num_blocks": self.num_blocks, "block_size": self.block_size,
                   "enabled": self.enabled, "calls": self.calls}  # fmt: skip
        return Case(f"{label}, {self.num_blocks} blocks of {self.block_size}", payload)

    def call(self, *parts: Any) -> Script:
        self.calls.append(list(parts))
        return self

    def look(self, name: str, tokens: Ids, salt: str | None = None) -> Script:
        """A new request and its lookup."""
        return self.call("request", name, list(tokens), salt).call("lookup", name)

    def place(
        self, name: str, tokens: Ids, upto: int | None = None, salt: str | None = None
    ) -> Script:
        """A new request: lookup, admitted, grown to `upto` tokens (all)."""
        self.look(name, tokens, salt).call("admit", name)
        return self.call("grow", name, len(tokens) if upto is None else upto)

    def step(self) -> Script:
        return self.call("begin_step")

    def end(self, *names: str) -> Script:
        for name in names:
            self.call("release", name)
        return self

    def serve(self, name: str, tokens: Ids, salt: str | None = None) -> Script:
        """A request alone in a step, from lookup to release."""
        return self.step().place(name, tokens, salt=salt).end(name)


class Played(Script):
    """A random run as the engine would make it: steps with decodes, newcomers, failures."""

    def __init__(self, rng: random.Random, steps: int) -> None:
        super().__init__(rng.randint(5, 10), rng.choice([2, 3, 4]))
        self.rng = rng
        payload = {"num_blocks": self.num_blocks, "block_size": self.block_size, "enabled": True}
        self.driver = Driver(PrefixCache, payload)
        self.common = [rng.randrange(3) for _ in range(5 * self.block_size)]
        self.running: list[str] = []
        self.number = 0
        for _ in range(steps):
            self._step()
        self.end(*self.running).call("reset")

    def call(self, *parts: Any) -> Script:
        super().call(*parts)
        getattr(self.driver, parts[0])(*parts[1:])
        return self

    def _step(self) -> None:
        self.step()
        scheduled = [name for name in list(self.running) if self._grow(name)]
        scheduled = [name for name in scheduled if name in self.running]
        if len(scheduled) > 1 and self.rng.random() < 0.1:  # a more urgent one needs its blocks
            victim = scheduled.pop()
            self.call("take_back_names", victim).end(victim)
            self.running.remove(victim)
        elif len(scheduled) == len(self.running):
            while len(self.running) < 4 and self.rng.random() < 0.6:
                name = self._newcomer()
                if name is None:
                    break
                scheduled.append(name)
        if self.rng.random() < 0.1:
            self._fail(scheduled)
        else:
            self._finish(scheduled)
        if self.rng.random() < 0.15:
            self.call("reset")

    def _total(self, name: str) -> int:
        return self.driver.requests[name].num_tokens

    def _fits(self, name: str, num_tokens: int) -> bool:
        return bool(self.driver.cache.can_grow(self.driver.requests[name], num_tokens))

    def _grow(self, name: str) -> bool:
        """The next chunk of a running request; the last one is preempted if blocks lack."""
        if name not in self.running:
            return False
        done = self.driver.requests[name].num_computed
        upto = min(done + self.rng.randint(1, 6), self._total(name))
        if self.rng.random() < 0.3:
            self.call("can_grow", name, upto)
        while not self._fits(name, upto):
            victim = self.running.pop()
            self.end(victim)
            if victim == name:
                return False
        self.call("grow", name, upto)
        return True

    def _newcomer(self) -> str | None:
        name = self.rng.choice("abcdef") if self.rng.random() < 0.3 else f"r{self.number}"
        name = f"r{self.number}" if name in self.running else name
        self.number += 1
        shared = self.common[: self.rng.randrange(len(self.common))]
        own = [self.rng.randrange(3) for _ in range(self.rng.randint(1, 2 * self.block_size))]
        self.look(name, shared + own, self.rng.choice([None, None, "x"]))
        hit, total = self.driver.hits[name], self._total(name)
        free = sum(self.driver.pool.ref_count(block) == 0 for block in hit)
        if -(-total // self.block_size) - len(hit) + free > self.driver.pool.num_free:
            return None
        self.call("admit", name)
        start = self.block_size * len(hit)
        self.call("grow", name, self.rng.randint(start + 1, total))
        self.running.append(name)
        return name

    def _fail(self, scheduled: list[str]) -> None:
        self.call("take_back_names")
        for name in reversed(scheduled):
            self.end(name)
            self.running.remove(name)

    def _finish(self, scheduled: list[str]) -> None:
        for name in scheduled:
            if self.driver.goals[name] < self._total(name):
                continue
            if self.rng.random() < 0.3 or self._total(name) >= 5 * self.block_size:
                self.end(name)
                self.running.remove(name)
            else:
                self.call("output", name, self.rng.randrange(3))


def script_lines(payload: Any) -> list[str]:
    """The script as lines to read; the first makes the cache."""
    extra = "" if payload["enabled"] else ", enabled=False"
    first = f"cache = PrefixCache(BlockPool({payload['num_blocks']!r}), {payload['block_size']!r}"
    return [f"{first}{extra})", *(_line(*call) for call in payload["calls"])]


def _line(name: str, *arguments: Any) -> str:
    if name == "request":
        request, tokens, salt = arguments
        extra = "" if salt is None else f", cache_salt={salt!r}"
        return f"{request} = Request({request!r}, {tokens}{extra})"
    if name == "output":
        return f"{arguments[0]}.append_output({arguments[1]})"
    if name == "lookup":
        return f"hit = cache.lookup({arguments[0]})"
    if name == "admit":
        return f"cache.admit({arguments[0]}, hit)"
    return f"cache.{name}({', '.join(str(item) for item in arguments)})"
