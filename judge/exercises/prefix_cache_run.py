"""Owns running the functions of `prefix-cache.names` and `.lookup`. Runs in the child."""

from __future__ import annotations

import gc
import random
import sys
import types
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

from judge.api import Context
from judge.execute import attempt
from judge.wire import Raised

CODE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType)


class CountingList(list[int]):
    """A list that counts how many of its items were read, one by one or in slices."""

    reads = 0

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        self.reads += len(found) if isinstance(index, slice) else 1
        return found

    def __iter__(self) -> Iterator[int]:
        for item in super().__iter__():
            self.reads += 1
            yield item


def name_classes(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Name the blocks of several prompts: [[tokens, block_size, salt], ...].

    The answer has one entry per prompt: what was raised, or a list in which equal numbers stand for
    equal names, counted through all prompts. "changed" if a call changed its tokens.
    """
    classes: dict[Hashable, int] = {}
    answer = []
    for tokens, block_size, salt in payload["prompts"]:
        given = list(tokens)
        names = attempt(parts["block_names"], given, block_size, salt)
        found = attempt(_numbers, names, classes)
        answer.append({"names": found, "changed": given != tokens})
    return answer


def _numbers(names: Any, classes: dict[Hashable, int]) -> Any:
    if isinstance(names, Raised) or type(names) is not list:
        return names
    return [classes.setdefault(name, len(classes)) for name in names]


def reads_per_token(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """How often `block_names` read each token, on average: {"names": their number, "reads": ...}.

    payload: "count" tokens made from "seed", and the "block_size".
    """
    tokens = CountingList(_long_tokens(payload))
    names = attempt(parts["block_names"], tokens, payload["block_size"])
    return {"names": _number(names), "reads": tokens.reads / payload["count"]}


def found_again(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """As `reads_per_token`, and "found": how many names a second call has in common with it."""
    answer = reads_per_token(parts, payload, context)
    first, second = (
        attempt(parts["block_names"], _long_tokens(payload), payload["block_size"])
        for _ in range(2)
    )
    return {**answer, "found": attempt(_common, first, second)}


def _common(first: list[Hashable], second: list[Hashable]) -> int:
    known = dict.fromkeys(first)
    return sum(name in known for name in second)


def room_of_names(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """{"names": their number, "first", "last": bytes that the first and the last name reach}."""
    names = attempt(parts["block_names"], _long_tokens(payload), payload["block_size"])
    ends = (names[0], names[-1]) if type(names) is list and names else (None, None)
    return {"names": _number(names), "first": footprint(ends[0]), "last": footprint(ends[1])}


def _long_tokens(payload: Any) -> list[int]:
    rng = random.Random(payload["seed"])
    return [rng.randrange(50_000) for _ in range(payload["count"])]


def _number(names: Any) -> Any:
    return len(names) if type(names) is list else names


def footprint(*roots: Any) -> int:
    """Bytes of everything that these objects keep alive; code is not counted."""
    stack = list(roots)
    seen: set[int] = set()
    total = 0
    while stack:
        item = stack.pop()
        if id(item) in seen or isinstance(item, CODE):
            continue
        seen.add(id(item))
        total += sys.getsizeof(item)
        stack += gc.get_referents(item)
    return total


class ColdName:
    """A name whose hash is that of every other: only == tells them apart."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __hash__(self) -> int:
        return 7

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ColdName) and self.text == other.text

    def __repr__(self) -> str:
        return f"same_hash({self.text!r})"


class AskedTable(defaultdict[Hashable, list[int]]):
    """A table of names that notes which it was asked for; reading an unknown one adds it."""

    def __init__(self, items: list[tuple[Hashable, list[int]]]) -> None:
        super().__init__(list, items)
        self.asked: dict[Hashable, None] = {}

    def __getitem__(self, name: Hashable) -> list[int]:
        self.asked[name] = None
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self.asked[name] = None
        return super().__contains__(name)

    def get(self, name: Hashable, default: Any = None) -> Any:
        self.asked[name] = None
        return super().get(name, default)


def hits(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Call `longest_hit` once: {"value": ..., "changed": what it changed or None, "asked": ...}.

    payload: "names" (texts), "num_tokens", "block_size", "known" ([[text, blocks], ...]). The names
    handed over are fresh objects, of `ColdName` if "cold". "asked" counts the names looked up.
    """
    make: Callable[[str], Hashable] = ColdName if payload["cold"] else str
    known: list[tuple[Hashable, list[int]]] = [
        (make(name), list(blocks)) for name, blocks in payload["known"]
    ]
    table = AskedTable(known)
    names: list[Hashable] = [make(name) for name in payload["names"]]
    before, same = list(names), {name: list(blocks) for name, blocks in known}
    value = attempt(
        parts["longest_hit"], names, payload["num_tokens"], payload["block_size"], table
    )
    asked = len(table.asked)
    changed = None
    if dict(table) != same:
        changed = "blocks_of"
    elif names != before:
        changed = "names"
    elif any(value is blocks for blocks in table.values()):
        changed = "nothing, but it returned a list of blocks_of itself"
    return {"value": value, "changed": changed, "asked": asked}
