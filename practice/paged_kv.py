"""Exercises of chapter 02: paged KV, from the bookkeeping of blocks to attention over them.

Write between the two marks of an exercise; helpers of your own may stand there too. Everything else
in this file stays as it is. Pool and slot mapping belong to the control plane, which runs without
torch: import torch inside the functions that need it, not up here. Grade with

    python practice/judge.py paged-kv.block-pool
    python practice/judge.py paged-kv.slot-mapping
    python practice/judge.py paged-kv.paged-attention
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mini_engine.interfaces import ExerciseNotStarted, OutOfBlocks

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["BlockPool", "OutOfBlocks", "paged_attention", "slot_mapping"]

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
        """Add one holder. A free block leaves the free list, wherever in it the block stands: it
        keeps its contents until it is handed out again, so a later request may revive it.

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

# --- paged-kv.slot-mapping: edit from here ---


def slot_mapping(
    block_table: Sequence[int], start: int, num_tokens: int, block_size: int
) -> list[int]:
    """The slots of the tokens at positions `start` to `start + num_tokens - 1` of one request.

    The cache is one long row of slots: block b owns the slots b * block_size to
    (b + 1) * block_size - 1. The block table lists the request's blocks in the order of its
    positions: the first block_size positions lie in block_table[0], the next in block_table[1].

    Example: blocks of 4, block_table [7, 2]: positions 3, 4, 5 lie in slots 31, 8, 9,
    so slot_mapping([7, 2], 3, 3, 4) is [31, 8, 9].

    Returns a list of ints, empty for num_tokens 0. The table may be longer than needed and is not
    changed. Raises ValueError if
        the table is too short for the last position,
        start or num_tokens is negative, or block_size is below 1.
    """
    raise ExerciseNotStarted("slot_mapping")


# --- end of paged-kv.slot-mapping ---

# --- paged-kv.paged-attention: edit from here ---


def paged_attention(
    query: Tensor,
    k_blocks: Tensor,
    v_blocks: Tensor,
    block_table: Sequence[int],
    seq_len: int,
    scale: float,
) -> Tensor:
    """Causal attention of one request whose keys and values lie scattered over blocks.

    Shapes
        query               [n, num_heads, head_dim], the last n of the request's seq_len positions
        k_blocks, v_blocks  [num_blocks, block_size, num_kv_heads, head_dim], the whole cache
        block_table         ints: position p lies in block block_table[p // block_size], at offset
                            p % block_size; it may be longer than needed
        result              query's shape and dtype

    Query i sees the positions up to seq_len - n + i. Scores are `scale` times the dot product.
    num_heads is a multiple of num_kv_heads: query head h reads KV head
    h // (num_heads // num_kv_heads).

    All other slots (behind the last token in its block, and blocks of other requests) hold other
    numbers, finite but possibly large: they must not change the result. No argument is changed.

    Raises ValueError if the table has too few blocks for seq_len tokens, or if n > seq_len.

    Import torch in here. You may gather keys and values first and then call your own
    attention_over_contiguous (`from kv_cache import attention_over_contiguous`), or the reference's
    from mini_engine.compute.attention_single; or go over the blocks one by one.
    """
    raise ExerciseNotStarted("paged_attention")


# --- end of paged-kv.paged-attention ---
