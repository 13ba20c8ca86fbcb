"""Owns the shadow model: it stands in the model's place, computes with integers and needs no torch.

Like a transformer it has layers with a KV cache, writes K and V of a step before anything attends,
and reads through block tables. Every number is a hash of all that went into it, so a step that
reads a stale, a foreign or an unwritten slot samples another token, and what it computed from there
on is another prefix for whoever reads it later.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from mini_engine.compute.rows import logits_rows
from mini_engine.compute.slots import slot_mapping
from mini_engine.interfaces import Chunk, Schedule

UNWRITTEN = 0  # as KV tensors start zeroed

SlotMapping = Callable[[Sequence[int], int, int, int], Sequence[int]]
LogitsRows = Callable[[Sequence[int], Sequence[int], Sequence[int]], Sequence[int]]


@dataclass(frozen=True)
class WrongRead:
    """A slot that a chunk read and that does not hold its request's own prefix."""

    request_id: str
    position: int
    block: int
    offset: int
    unwritten: bool  # nobody wrote it (since it was poisoned); else it holds something else

    def __str__(self) -> str:
        kind = "unwritten" if self.unwritten else "foreign"
        return (
            f"{self.request_id} reads {kind} KV at position {self.position}, "
            f"block {self.block} offset {self.offset}"
        )


class ShadowModel:
    """A runner for LLMEngine; two parts of a batch can be replaced, as in the torch runner.

    Two layers: K and V of the first follow from the token and its position, those of the second
    from all that the first one's attention read, and the next token from all that the second one's
    read. `wrong_reads` are those of the last step, at most one for each chunk.
    """

    def __init__(
        self,
        block_size: int,
        vocab_size: int,
        *,
        slot_mapping: SlotMapping = slot_mapping,
        logits_rows: LogitsRows = logits_rows,
    ) -> None:
        self.block_size = block_size
        self.vocab_size = vocab_size
        self.wrong_reads: list[WrongRead] = []
        self._slot_mapping, self._logits_rows = slot_mapping, logits_rows
        self._layers: tuple[dict[int, int], dict[int, int]] = ({}, {})  # slot -> number
        self._blank: set[int | None] = {None}  # what slots hold that nobody wrote

    def run(self, schedule: Schedule) -> dict[str, int]:
        """Compute the step's chunks; returns request id -> sampled token, in batch order.

        Raises ValueError for a chunk beyond its request's tokens or block table, and for rows that
        are not one for each chunk that samples; IndexError for a row outside the batch.
        """
        chunks = schedule.chunks
        for chunk in chunks:
            self._check(chunk)
        starts = [0]
        for chunk in chunks:
            starts.append(starts[-1] + chunk.num_tokens)
        ends = [chunk.start + chunk.num_tokens for chunk in chunks]
        rows = self._logits_rows(starts, ends, [chunk.request.num_tokens for chunk in chunks])
        hidden = self.compute(chunks)
        requests = [chunk.request for chunk in chunks if chunk.samples]
        if not requests:
            return {}
        if len(rows) != len(requests):
            raise ValueError(f"{len(rows)} rows of logits for {len(requests)} requests")
        pairs = zip(requests, rows, strict=True)
        return {request.request_id: hidden[row] % self.vocab_size for request, row in pairs}

    def compute(self, chunks: Sequence[Chunk]) -> list[int]:
        """Write and read the chunks' K and V in both layers; returns a number per row.

        Block tables must hold all positions that the chunks compute.
        """
        slots = [slot for chunk in chunks for slot in self._slots(chunk)]
        numbers = [number for chunk in chunks for number in _inputs(chunk)]
        for layer in self._layers:
            layer.update(zip(slots, numbers, strict=True))
            numbers = [number for chunk in chunks for number in self._attend(layer, chunk)]
        self.wrong_reads = [read for read in map(self.wrong_read, chunks) if read is not None]
        return numbers

    def poison(self, chunks: Sequence[Chunk], free_blocks: Iterable[int], number: float) -> None:
        """Debug mode, before `run`: fill with `number` every slot that the step must not read.

        These are the slots of a chunk's block table at or beyond its start, and all of
        `free_blocks`; compare ModelRunner.poison.
        """
        size, value = self.block_size, hash(number)
        self._blank.add(value)
        for chunk in chunks:
            for position in range(chunk.start, len(chunk.request.block_table) * size):
                block = chunk.request.block_table[position // size]
                self._fill(block * size + position % size, value)
        for block in free_blocks:
            for slot in range(block * size, block * size + size):
                self._fill(slot, value)

    def next_token(self, token_ids: Sequence[int], salt: str | None = None) -> int:
        """What follows these tokens of a request that is served alone."""
        state = 0
        for number in _right(token_ids, salt):
            state = hash((state, number))
        return state % self.vocab_size

    def wrong_read(self, chunk: Chunk) -> WrongRead | None:
        """The first slot that attention of this chunk reads and that isn't its own prefix's."""
        request, layer, size = chunk.request, self._layers[1], self.block_size
        end = chunk.start + chunk.num_tokens
        right = _right(request.token_ids[:end], request.cache_salt)
        for position, number in enumerate(right):
            block, offset = request.block_table[position // size], position % size
            held = layer.get(block * size + offset)
            if held != number:
                blank = held in self._blank
                return WrongRead(request.request_id, position, block, offset, blank)
        return None

    def _check(self, chunk: Chunk) -> None:
        """What a batch of tensors could not be made of; compare compute.batch.build_batch."""
        request, end = chunk.request, chunk.start + chunk.num_tokens
        if chunk.num_tokens < 1 or end > request.num_tokens:
            raise ValueError(
                f"request {request.request_id!r}: a chunk of {chunk.num_tokens} tokens from "
                f"{chunk.start} on, but it has {request.num_tokens} tokens"
            )
        num_blocks = -(-end // self.block_size)
        if num_blocks > len(request.block_table):
            raise ValueError(
                f"request {request.request_id!r}: {end} tokens need {num_blocks} blocks of "
                f"{self.block_size}, its block table has {len(request.block_table)}"
            )

    def _slots(self, chunk: Chunk) -> Sequence[int]:
        table = chunk.request.block_table
        slots = self._slot_mapping(table, chunk.start, chunk.num_tokens, self.block_size)
        if len(slots) != chunk.num_tokens:
            raise ValueError(f"{len(slots)} slots for {chunk.num_tokens} tokens")
        return slots

    def _attend(self, layer: dict[int, int], chunk: Chunk) -> list[int]:
        """Each token reads all positions up to its own, through the block table."""
        size, end = self.block_size, chunk.start + chunk.num_tokens
        states, state = [], 0
        for index, block in enumerate(chunk.request.block_table[: -(-end // size)]):
            first = block * size
            for slot in range(first, first + min(size, end - index * size)):
                state = hash((state, layer.get(slot, UNWRITTEN)))
                states.append(state)
        return states[chunk.start :]

    def _fill(self, slot: int, value: int) -> None:
        for layer in self._layers:
            layer[slot] = value


def _inputs(chunk: Chunk) -> Iterator[int]:
    """What the chunk's tokens bring into the first layer."""
    request = chunk.request
    salt = _number(request.cache_salt)
    for position in range(chunk.start, chunk.start + chunk.num_tokens):
        yield hash((salt, position, request.token_ids[position]))


def _number(salt: str | None) -> int:
    """A salt as a number; `hash` of a text differs from process to process."""
    return 0 if salt is None else zlib.crc32(salt.encode())


def _right(token_ids: Sequence[int], salt: str | None) -> Iterator[int]:
    """What the second layer's slots hold of these tokens if nothing went wrong."""
    number, state = _number(salt), 0
    for position, token in enumerate(token_ids):
        state = hash((state, hash((number, position, token))))
        yield state
