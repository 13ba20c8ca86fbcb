"""Owns the KV blocks: which are free, in which order they are reused, how many tables hold each.

The names of blocks are the prefix cache's business; it only tells the pool at which end of the free
list a block shall queue. Compare vLLM's `vllm/v1/core/block_pool.py`, where a doubly linked list
does what an OrderedDict does here: any block leaves the middle of the free list in constant time.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence

from mini_engine.config import require_int
from mini_engine.interfaces import BrokenInvariant, OutOfBlocks


class BlockPool:
    """A fixed number of blocks with ids 0 to `num_blocks - 1`; see interfaces.BlockPool."""

    def __init__(self, num_blocks: int) -> None:
        require_int("BlockPool", "num_blocks", num_blocks, 1)
        self.num_blocks = num_blocks
        self._ref_counts = [0] * num_blocks
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(range(num_blocks))

    @property
    def num_free(self) -> int:
        """How many blocks are free."""
        return len(self._free)

    def allocate(self, count: int) -> list[int]:
        """Take `count` blocks from the front of the free list, each with reference count 1.

        Raises OutOfBlocks if fewer are free and ValueError if count < 0; both change nothing.
        """
        if count < 0:
            raise ValueError(f"cannot allocate {count} blocks; the count must be 0 or more")
        if count > len(self._free):
            raise OutOfBlocks(
                f"{count} blocks asked for, {len(self._free)} of {self.num_blocks} are free"
            )
        block_ids = [self._free.popitem(last=False)[0] for _ in range(count)]
        for block_id in block_ids:
            self._ref_counts[block_id] = 1
        return block_ids

    def share(self, block_id: int) -> None:
        """Add one holder; a free block is taken out of the free list."""
        if not 0 <= block_id < self.num_blocks:
            raise self._no_such_block(block_id)
        if self._ref_counts[block_id] == 0:
            del self._free[block_id]
        self._ref_counts[block_id] += 1

    def free(self, block_id: int, *, to_front: bool = True) -> None:
        """Take one holder away; with the last one gone the block joins the free list.

        Raises ValueError for a block that is free already and changes nothing.
        """
        if self.ref_count(block_id) == 0:
            raise ValueError(f"block {block_id} is free already; it was freed twice")
        self._ref_counts[block_id] -= 1
        if self._ref_counts[block_id] == 0:
            self._free[block_id] = None
            if to_front:
                self._free.move_to_end(block_id, last=False)

    def ref_count(self, block_id: int) -> int:
        """How many tables hold the block. Raises ValueError for an id outside the pool."""
        if not 0 <= block_id < self.num_blocks:
            raise self._no_such_block(block_id)
        return self._ref_counts[block_id]

    def free_block_ids(self) -> list[int]:
        """The free list, the block that is handed out next first."""
        return list(self._free)

    def check_invariants(self, tables: Iterable[Sequence[int]]) -> None:
        """Raise BrokenInvariant unless counts, free list and the given block tables agree."""
        held = Counter(block_id for table in tables for block_id in table)
        for block_id, count in enumerate(self._ref_counts):
            if count != held[block_id]:
                raise BrokenInvariant(
                    f"block {block_id} has reference count {count}, {held[block_id]} tables hold it"
                )
            if (count == 0) != (block_id in self._free):
                place = "is" if block_id in self._free else "is not"
                raise BrokenInvariant(
                    f"block {block_id} has reference count {count} and {place} in the free list"
                )
        strangers = [b for b in (*self._free, *held) if not 0 <= b < self.num_blocks]
        if strangers:
            raise BrokenInvariant(f"block ids outside the pool: {sorted(set(strangers))}")

    def _no_such_block(self, block_id: int) -> ValueError:
        return ValueError(
            f"there is no block {block_id}; the pool's ids are 0 to {self.num_blocks - 1}"
        )
