"""Owns driving a prefix cache with a script of calls. Runs in the child; knows no expected value.

A script is a list of calls, each a list that begins with its name:
    ["request", r, tokens, salt]    a new request; ["output", r, token] appends to it
    ["lookup", r], ["admit", r]     the latter with what the last lookup of r returned
    ["can_grow", r, n], ["grow", r, n], ["release", r]
    ["begin_step"], ["take_back_names"], ["take_back_names", r], ["reset"]
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

from judge import wire
from judge.api import Context
from judge.execute import attempt
from judge.exercises.prefix_cache_run import footprint as bytes_kept
from judge.wire import Foreign, Raised
from mini_engine.control.block_pool import BlockPool
from mini_engine.control.request import Request

NO_HIT = Foreign("missing", "the lookup before it returned no list")


def drive(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Make a pool and a cache, run the script, look at everything after each call.

    payload: "num_blocks", "block_size", "enabled", "calls". The answer is a list: the outcome of
    making the cache, then for each call {"value": what it returned or raised, "state": ...}, where
    the state is None if it is that of the call before.
    """
    driver = Driver(parts["PrefixCache"], payload)
    if isinstance(driver.cache, Raised):
        return [{"value": driver.cache}]
    answers = [
        {"value": attempt(lambda: driver.cache.pool is driver.pool), "state": driver.state()}
    ]
    for name, *arguments in payload["calls"]:
        value = _plain(attempt(getattr(driver, name), *arguments))
        answers.append({"value": value, "state": driver.state()})
        if isinstance(value, Foreign) and value == NO_HIT:
            break
    return answers


class Driver:
    """The cache under test, a pool, and requests by name; a method for each call of a script."""

    def __init__(self, make: Callable[..., Any], payload: Any) -> None:
        self.pool = BlockPool(payload["num_blocks"])
        self.block_size = payload["block_size"]
        options = {} if payload["enabled"] else {"enabled": False}
        self.cache = attempt(make, self.pool, self.block_size, **options)
        self.requests: dict[str, Request] = {}
        self.hits: dict[str, Any] = {}
        self.goals: dict[str, int] = {}  # computed when the step is over
        self.last: Any = None

    def request(self, name: str, tokens: list[int], salt: str | None) -> None:
        self.requests[name] = Request(name, tokens, cache_salt=salt)

    def output(self, name: str, token: int) -> None:
        self.requests[name].append_output(token)

    def lookup(self, name: str) -> Any:
        self.hits[name] = self.cache.lookup(self.requests[name])
        return _plain(self.hits[name])

    def admit(self, name: str) -> Any:
        """Afterwards the list of the lookup is overwritten: the cache must not have kept it."""
        hit = self.hits.pop(name, None)
        if type(hit) is not list:
            return NO_HIT
        given = list(hit)
        value = self.cache.admit(self.requests[name], hit)
        self.requests[name].num_computed = self.block_size * len(given)
        if hit != given:
            return Foreign("changed", "it changed the list of the lookup")
        hit[:] = [-1] * len(hit)
        return value

    def can_grow(self, name: str, num_tokens: int) -> Any:
        return self.cache.can_grow(self.requests[name], num_tokens)

    def grow(self, name: str, num_tokens: int) -> Any:
        value = self.cache.grow(self.requests[name], num_tokens)
        self.goals[name] = num_tokens
        return value

    def release(self, name: str) -> Any:
        self.goals.pop(name, None)
        value = self.cache.release(self.requests[name])
        self.requests[name].num_computed = 0
        return value

    def begin_step(self) -> Any:
        for name, goal in self.goals.items():
            self.requests[name].num_computed = goal
        self.goals.clear()
        return self.cache.begin_step()

    def take_back_names(self, name: str | None = None) -> Any:
        if name is None:
            return self.cache.take_back_names()
        return self.cache.take_back_names(self.requests[name])

    def reset(self) -> Any:
        return self.cache.reset()

    def state(self) -> Any:
        """Tables, counts, free list and the blocks with a name; None if nothing has changed."""
        blocks = range(self.pool.num_blocks)
        named = [attempt(self.cache.is_named, block) for block in blocks]
        odd = [value for value in named if type(value) is not bool]
        state = {
            "tables": {name: _plain(r.block_table) for name, r in self.requests.items()},
            "counts": [self.pool.ref_count(block) for block in blocks],
            "free": self.pool.free_block_ids(),
            "named": wire.copy(odd[0]) if odd else [block for block in blocks if named[block]],
        }
        if state == self.last:
            return None
        self.last = state
        return state


def _plain(value: Any) -> Any:
    """A value as it arrives at the judge; lists of ints, nearly all there is, in a blink."""
    if type(value) is list and all(type(item) is int for item in value):
        return list(value)
    return value if value is None or type(value) is bool else wire.copy(value)


def serve_many(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Serve many short requests, one after another, and measure what the cache keeps.

    payload: "num_blocks", "block_size", "prompts", "warm" (so many first, then the first measure).
    The answer: all hits in blocks, and the bytes kept at both moments.
    """
    driver = Driver(parts["PrefixCache"], {**payload, "enabled": True})
    if isinstance(driver.cache, Raised):
        return driver.cache
    hits, kept = [], []
    for number, tokens in enumerate(payload["prompts"]):
        if number == payload["warm"]:
            kept.append(footprint(driver.cache))
        request = Request(f"r{number}", tokens)
        driver.cache.begin_step()
        hit = driver.cache.lookup(request)
        hits.append(len(hit))
        driver.cache.admit(request, hit)
        driver.cache.grow(request, len(tokens))
        driver.cache.release(request)
    kept.append(footprint(driver.cache))
    return {"hits": hits, "kept": kept}


def footprint(cache: Any) -> int:
    """Bytes of everything that the cache, or its module, keeps alive; code is not counted."""
    module = vars(sys.modules.get(type(cache).__module__, types.ModuleType("none")))
    return bytes_kept(cache, *(v for name, v in module.items() if not name.startswith("__")))
