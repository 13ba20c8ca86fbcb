"""Owns the workloads of the offline benchmark: random prompts, and how many tokens follow."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

Prompts = list[list[int]]


@dataclass(frozen=True)
class Workload:
    """Prompts that arrive together and get `new_tokens` tokens each, whatever those are."""

    name: str
    title: str
    prompts: Prompts
    new_tokens: int

    @property
    def longest(self) -> int:
        """Tokens of the longest request, its output included."""
        return max(map(len, self.prompts)) + self.new_tokens


def make_workload(name: str, vocab_size: int, seed: int = 0) -> Workload:
    """One of WORKLOADS by its name; ValueError, with the names, if there is none."""
    if name not in WORKLOADS:
        raise ValueError(f"there is no workload {name!r}; there are: {', '.join(WORKLOADS)}")
    title, new_tokens, make = WORKLOADS[name]
    return Workload(name, title, make(random.Random(seed), vocab_size), new_tokens)


def _random_tokens(rng: random.Random, vocab_size: int, count: int) -> list[int]:
    return [rng.randrange(min(10, vocab_size - 1), vocab_size) for _ in range(count)]


def _spread(count: int, shortest: int, longest: int) -> Callable[[random.Random, int], Prompts]:
    """Lengths evenly from the shortest to the longest, shuffled."""

    def make(rng: random.Random, vocab_size: int) -> Prompts:
        steps = max(count - 1, 1)
        lengths = [shortest + (longest - shortest) * i // steps for i in range(count)]
        rng.shuffle(lengths)
        return [_random_tokens(rng, vocab_size, length) for length in lengths]

    return make


def _alone(rng: random.Random, vocab_size: int) -> Prompts:
    """The first prompt of "mixed", alone."""
    return _spread(16, 16, 256)(rng, vocab_size)[:1]


def _shared(rng: random.Random, vocab_size: int) -> Prompts:
    """16 prompts that begin with the same 512 tokens; 16 tokens of each are its own."""
    common = _random_tokens(rng, vocab_size, 512)
    return [common + _random_tokens(rng, vocab_size, 16) for _ in range(16)]


WORKLOADS: dict[str, tuple[str, int, Callable[[random.Random, int], Prompts]]] = {
    "mixed": ("16 prompts of 16 to 256 tokens", 64, _spread(16, 16, 256)),
    "alone": ("1 prompt", 64, _alone),
    "many": ("64 prompts of 16 to 256 tokens", 64, _spread(64, 16, 256)),
    "long": ("4 prompts of 2,048 tokens", 16, _spread(4, 2048, 2048)),
    "shared": ("16 prompts with 512 tokens in common", 32, _shared),
}
