"""Owns the way from a token's position to its slot in the paged cache. Torch-free: plain integers."""

from __future__ import annotations

from collections.abc import Sequence

from mini_engine.config import require_int


def slot_mapping(
    block_table: Sequence[int], start: int, num_tokens: int, block_size: int
) -> list[int]:
    """The slots of the tokens at positions `start` to `start + num_tokens - 1` of one request.

    Position p lives in the request's block number p // block_size, whose id the table tells, at
    offset p % block_size; its slot is id * block_size + offset. Raises ValueError if the table is
    too short for the last position, or for a negative start or count or a block size below 1.
    """
    require_int("slot_mapping", "block_size", block_size, 1)
    require_int("slot_mapping", "start", start, 0)
    require_int("slot_mapping", "num_tokens", num_tokens, 0)
    end = start + num_tokens
    if end > len(block_table) * block_size:
        raise ValueError(
            f"a block table of {len(block_table)} blocks of {block_size} tokens has slots for "
            f"positions 0 to {len(block_table) * block_size - 1}, but positions {start} to "
            f"{end - 1} are asked for"
        )
    return [
        block_table[position // block_size] * block_size + position % block_size
        for position in range(start, end)
    ]
