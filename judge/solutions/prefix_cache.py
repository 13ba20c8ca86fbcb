"""Owns the references of `prefix-cache.names` and `prefix-cache.lookup`."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence


def block_names(
    token_ids: Sequence[int], block_size: int, salt: str | None = None
) -> list[Hashable]:
    """One SHA-256 per full block, of (parent's digest, the block's tokens, salt).

    `repr` of that tuple is unambiguous: numbers are apart, and None is not "". Raises ValueError if
    block_size is below 1. Compare vLLM's `hash_block_tokens` in vllm/v1/core/kv_cache_utils.py.
    """
    if block_size < 1:
        raise ValueError(f"block_size must be 1 or more, got {block_size}")
    names: list[Hashable] = []
    parent = b""
    for end in range(block_size, len(token_ids) + 1, block_size):
        content = (parent, tuple(token_ids[end - block_size : end]), salt)
        parent = hashlib.sha256(repr(content).encode("utf-8", "surrogatepass")).digest()
        names.append(parent)
    return names


def longest_hit(
    names: Sequence[Hashable],
    num_tokens: int,
    block_size: int,
    blocks_of: Mapping[Hashable, Sequence[int]],
) -> list[int]:
    """The oldest block of each name up to the first unknown one; at most num_tokens - 1 tokens."""
    hit: list[int] = []
    for name in names[: max(num_tokens - 1, 0) // block_size]:
        blocks = blocks_of.get(name)
        if not blocks:
            break
        hit.append(blocks[0])
    return hit
