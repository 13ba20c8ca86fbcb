"""Owns what watches a scheduler from below: a prefix cache that notes, and a pretended KV memory.

The memory remembers what was written into each slot, and every chunk looks up all that it would
read: a wrong count, or a block given away too early, is seen at once, without a model.
"""

from __future__ import annotations

from typing import Any

from judge.engine_run import MadeUpTokens
from mini_engine.control.prefix_cache import PrefixCache
from mini_engine.control.request import Request
from mini_engine.interfaces import Chunk


class WatchedCache(PrefixCache):
    """The reference's prefix cache, which also notes who was admitted, and with which pool."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.begin_notes()

    def begin_notes(self) -> None:
        """Forget the notes of the step before."""
        self.admitted: list[list[Any]] = []  # [id, hit, blocks needed, free ones, lookup's hit]
        self.freed: dict[str, list[Any]] = {}  # id -> [blocks that became free, for whom]
        self.began = True  # until something grows first
        self.taken_from: list[str] = []  # whose names take_back_names() took, when it took all
        self.dry_for: str | None = None  # for whom there were too few blocks
        self._is_young = False
        self._lacks: str | None = None

    def can_grow(self, request: Request, num_tokens: int) -> bool:
        can = super().can_grow(request, num_tokens)
        self._lacks = None if can else request.request_id
        return can

    def begin_step(self) -> None:
        self._is_young = True
        super().begin_step()

    def admit(self, request: Request, hit: list[int]) -> None:
        self._note(request, hit)
        super().admit(request, hit)

    def grow(self, request: Request, num_tokens: int) -> None:
        if not request.block_table and request.request_id not in [a[0] for a in self.admitted]:
            self._note(request, [])  # nothing was hit, so `admit` had nothing to do
        self.began = self.began and self._is_young
        if not super().can_grow(request, num_tokens):
            self.dry_for = request.request_id
        super().grow(request, num_tokens)

    def take_back_names(self, request: Request | None = None) -> None:
        if request is None:
            self.taken_from = sorted(set(self._young.values()))
        super().take_back_names(request)

    def release(self, request: Request) -> None:
        before = self.pool.num_free
        super().release(request)
        self.freed[request.request_id] = [self.pool.num_free - before, self._lacks]

    def needed(self, request: Request, hit: list[int]) -> int:
        """Free blocks that all its known tokens take: a hit block that is free counts as well."""
        missing = -(-request.num_tokens // self.block_size) - len(hit)
        return missing + sum(self.pool.ref_count(block) == 0 for block in hit)

    def _note(self, request: Request, hit: list[int]) -> None:
        size, name = len(hit) * self.block_size, request.request_id
        known = len(self.lookup(request)) * self.block_size
        self.admitted.append([name, size, self.needed(request, hit), self.pool.num_free, known])


class Samples:
    """The sampled tokens: scripted in the payload, or made up from seed, request and length."""

    def __init__(self, payload: Any) -> None:
        self._made_up = MadeUpTokens(payload["token_seed"], payload["vocab_size"])
        self._scripts = {r["id"]: r for r in payload["requests"] if "output" in r}

    def token(self, request_id: str, num_tokens: int) -> int:
        """What follows the first `num_tokens` tokens of a request."""
        script = self._scripts.get(request_id)
        if script is None:
            return self._made_up.token(request_id, num_tokens)
        index = num_tokens - len(script["prompt"])
        return int(script["output"][index]) if index < len(script["output"]) else 0


class Memory:
    """What each slot holds: a digest of the tokens up to and including the one written there."""

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self.slots: dict[tuple[int, int], int] = {}

    def compute(self, chunks: list[Chunk]) -> list[list[Any]]:
        """Write, then read, as every layer does; [id, position, block] for each first bad read."""
        for chunk in chunks:
            digests, table = self._digests(chunk), chunk.request.block_table
            for position in range(chunk.start, min(chunk.start + chunk.num_tokens, len(digests))):
                if position // self.block_size < len(table):
                    self.slots[self._slot(table, position)] = digests[position]
        return [bad for chunk in chunks for bad in self._bad_reads(chunk)[:1]]

    def _bad_reads(self, chunk: Chunk) -> list[list[Any]]:
        table, found = chunk.request.block_table, []
        for position, digest in enumerate(self._digests(chunk)):
            if position // self.block_size >= len(table):
                found.append([chunk.request.request_id, position, None])
            elif self.slots.get(self._slot(table, position)) != digest:
                found.append(
                    [chunk.request.request_id, position, table[position // self.block_size]]
                )
        return found

    def _digests(self, chunk: Chunk) -> list[int]:
        digests, digest = [], 0
        for token in chunk.request.token_ids[: chunk.start + chunk.num_tokens]:
            digest = hash((digest, token))
            digests.append(digest)
        return digests

    def _slot(self, table: list[int], position: int) -> tuple[int, int]:
        return table[position // self.block_size], position % self.block_size
