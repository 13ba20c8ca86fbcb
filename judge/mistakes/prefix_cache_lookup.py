"""Owns the known mistakes of `prefix-cache.lookup`: each is wrong in one way."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from judge.solutions.prefix_cache import longest_hit

Names = list[Hashable]
Table = Mapping[Hashable, list[int]]


def _bound(num_tokens: int, block_size: int) -> int:
    return max(num_tokens - 1, 0) // block_size


def everything(names: Names, num_tokens: int, block_size: int, blocks_of: Table) -> list[int]:
    return longest_hit(names, num_tokens + 1, block_size, blocks_of)


def always_one_less(names: Names, num_tokens: int, block_size: int, blocks_of: Table) -> list[int]:
    return longest_hit(names[:-1], num_tokens, block_size, blocks_of)


def all_or_nothing(names: Names, num_tokens: int, block_size: int, blocks_of: Table) -> list[int]:
    hit = longest_hit(names, num_tokens + 1, block_size, blocks_of)
    return [] if len(hit) * block_size >= num_tokens else hit


def skips_gaps(names: Names, num_tokens: int, block_size: int, blocks_of: Table) -> list[int]:
    bounded = names[: _bound(num_tokens, block_size)]
    return [blocks_of[name][0] for name in bounded if name in blocks_of]


def counts_hits_over_gaps(
    names: Names, num_tokens: int, block_size: int, blocks_of: Table
) -> list[int]:
    """The same with a bound on the blocks that were hit, not on the names."""
    hit = [blocks_of[name][0] for name in names if name in blocks_of]
    return hit[: _bound(num_tokens, block_size)]


def from_the_end(names: Names, num_tokens: int, block_size: int, blocks_of: Table) -> list[int]:
    """Takes for granted that everything before a known name is known."""
    for count in range(_bound(num_tokens, block_size), 0, -1):
        if names[count - 1 : count] and names[count - 1] in blocks_of:
            return [blocks_of[name][0] for name in names[:count]]
    return []


def newest(names: Names, num_tokens: int, block_size: int, blocks_of: Table) -> list[int]:
    count = len(longest_hit(names, num_tokens, block_size, blocks_of))
    return [blocks_of[name][-1] for name in names[:count]]


def smallest(names: Names, num_tokens: int, block_size: int, blocks_of: Table) -> list[int]:
    count = len(longest_hit(names, num_tokens, block_size, blocks_of))
    return [min(blocks_of[name]) for name in names[:count]]


def all_blocks(names: Names, num_tokens: int, block_size: int, blocks_of: Table) -> list[int]:
    count = len(longest_hit(names, num_tokens, block_size, blocks_of))
    return [block for name in names[:count] for block in blocks_of[name]]


def adds_names(names: Names, num_tokens: int, block_size: int, blocks_of: Table) -> list[int]:
    hit = []
    for name in names[: _bound(num_tokens, block_size)]:
        blocks = blocks_of[name]
        if not blocks:
            break
        hit.append(blocks[0])
    return hit


def key_error(names: Names, num_tokens: int, block_size: int, blocks_of: Table) -> list[int]:
    for name in names[: _bound(num_tokens, block_size)]:
        if name not in blocks_of:
            raise KeyError(name)
    return longest_hit(names, num_tokens, block_size, blocks_of)


def waits_for_key_error(
    names: Names, num_tokens: int, block_size: int, blocks_of: Table
) -> list[int]:
    hit = []
    for name in names[: _bound(num_tokens, block_size)]:
        try:
            blocks = blocks_of[name]
        except KeyError:
            break
        hit.append(blocks[0])  # IndexError: the defaultdict has made an empty list
    return hit


def by_hash(names: Names, num_tokens: int, block_size: int, blocks_of: Table) -> list[int]:
    hashes: dict[Hashable, list[int]] = {hash(name): ids for name, ids in blocks_of.items()}
    return longest_hit([hash(name) for name in names], num_tokens, block_size, hashes)


def takes_out(names: Names, num_tokens: int, block_size: int, blocks_of: Table) -> list[int]:
    hit = longest_hit(names, num_tokens, block_size, blocks_of)
    for name, block in zip(names, hit, strict=False):
        blocks_of[name].remove(block)
    return hit


def counts_tokens(names: Names, num_tokens: int, block_size: int, blocks_of: Table) -> Any:
    return block_size * len(longest_hit(names, num_tokens, block_size, blocks_of))


def none_for_empty(names: Names, num_tokens: int, block_size: int, blocks_of: Table) -> Any:
    return longest_hit(names, num_tokens, block_size, blocks_of) or None
