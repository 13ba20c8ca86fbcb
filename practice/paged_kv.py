"""Exercises of chapter 02: paged KV, the bookkeeping of blocks.

No torch here: the pool belongs to the control plane. Write between the two marks of an exercise;
helpers of your own may stand there too. Everything else in this file stays as it is. Grade with

    python practice/judge.py paged-kv.block-pool
"""

from __future__ import annotations

from mini_engine.interfaces import ExerciseNotStarted, OutOfBlocks

__all__ = ["BlockPool", "OutOfBlocks"]

# --- paged-kv.block-pool: edit from here ---


class BlockPool:
    """A fixed number of KV blocks with ids 0 to `num_blocks - 1`.

    A block is free (reference count 0, in the free list) or held by one or more block tables
    (reference count 1 or more, not in the free list). Always: free + used = num_blocks.
    The free list has an order: `allocate` takes from its front. A call that raises changes nothing.
    """

    num_blocks: int

    def __init__(self, num_blocks: int) -> None:
        """All blocks are free, in the order of their ids.

        Raises TypeError unless num_blocks is an int (a bool is not one), ValueError if it is below
        1.
        """
        raise ExerciseNotStarted("BlockPool.__init__")

    @property
    def num_free(self) -> int:
        """How many blocks are free."""
        raise ExerciseNotStarted("BlockPool.num_free")

    def allocate(self, count: int) -> list[int]:
        """Take `count` blocks from the front of the free list, in its order, each with count 1.

        Raises OutOfBlocks if fewer are free, ValueError if count < 0. allocate(0) is [].
        """
        raise ExerciseNotStarted("BlockPool.allocate")

    def share(self, block_id: int) -> None:
        """Add one holder. A free block leaves the free list, wherever in it the block stands.

        Raises ValueError for an id outside the pool.
        """
        raise ExerciseNotStarted("BlockPool.share")

    def free(self, block_id: int, *, to_front: bool = True) -> None:
        """Take one holder away; with the last one gone the block joins the free list.

        It joins at the front (reused first) or at the back (reused last).
        Raises ValueError for a block that is free already, and for an id outside the pool.
        """
        raise ExerciseNotStarted("BlockPool.free")

    def ref_count(self, block_id: int) -> int:
        """How many tables hold the block. Raises ValueError for an id outside the pool."""
        raise ExerciseNotStarted("BlockPool.ref_count")

    def free_block_ids(self) -> list[int]:
        """The free list, what is handed out next first. The caller may change the returned list."""
        raise ExerciseNotStarted("BlockPool.free_block_ids")


# --- end of paged-kv.block-pool ---
