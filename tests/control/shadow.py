"""Owns a shadow of the KV cache: who wrote what into each slot, without a model.

What K and V of a token depend on is all tokens up to it, and nothing else. So a slot holds the
number of that prefix (tokens and salt); it is right for a request exactly if the numbers are equal.
"""

from __future__ import annotations

from collections.abc import Sequence

from mini_engine.control.request import Request
from mini_engine.interfaces import Chunk


class ForeignKV(AssertionError):
    """A step reads a slot that nobody wrote, or that holds another prefix."""


class ShadowKV:
    """One slot per block and offset; each layer of a step writes everything before it reads."""

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self.slots: dict[tuple[int, int], int] = {}
        self._numbers: dict[tuple[object, int], int] = {}  # (number of the parent, token) -> number
        self._of: dict[str, list[int]] = {}  # request id -> the numbers of its prefixes

    def write(self, chunks: Sequence[Chunk]) -> None:
        """Write the slots of these chunks' tokens."""
        for chunk in chunks:
            numbers = self._prefixes(chunk.request)
            for position in range(chunk.start, chunk.start + chunk.num_tokens):
                self.slots[self._slot(chunk.request, position)] = numbers[position]

    def read(self, chunks: Sequence[Chunk]) -> None:
        """Read all that the chunks attend to: every position before each chunk's end."""
        for chunk in chunks:
            numbers = self._prefixes(chunk.request)
            for position in range(chunk.start + chunk.num_tokens):
                slot = self._slot(chunk.request, position)
                if self.slots.get(slot) != numbers[position]:
                    kind = "foreign" if slot in self.slots else "unwritten"
                    raise ForeignKV(
                        f"{chunk.request.request_id} reads {kind} KV at position {position}, "
                        f"block {slot[0]} offset {slot[1]}"
                    )

    def _slot(self, request: Request, position: int) -> tuple[int, int]:
        index, offset = divmod(position, self.block_size)
        if index >= len(request.block_table):
            raise ForeignKV(f"{request.request_id} has no block for position {position}")
        return request.block_table[index], offset

    def _prefixes(self, request: Request) -> list[int]:
        numbers = self._of.setdefault(request.request_id, [])
        for position in range(len(numbers), request.num_tokens):
            parent = numbers[-1] if numbers else ("salt", request.cache_salt)
            key = (parent, request.token_ids[position])
            numbers.append(self._numbers.setdefault(key, len(self._numbers)))
        return numbers
