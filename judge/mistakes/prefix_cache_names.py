"""Owns the known mistakes of `prefix-cache.names`: each is wrong in one way."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from typing import Any

from judge.solutions.prefix_cache import block_names

Ids = list[int]
Name = Callable[[Any, int, tuple[int, ...], str | None], Any]


def _chain(ids: Ids, size: int, salt: str | None, name: Name) -> list[Hashable]:
    """Digests of `name(parent, index, own tokens, salt)`, with the reference's refusals."""
    names: list[Hashable] = []
    for index in range(len(block_names(ids, size, salt))):
        own = tuple(ids[index * size : (index + 1) * size])
        content = name(names[-1] if names else None, index, own, salt)
        names.append(hashlib.sha256(repr(content).encode("utf-8", "surrogatepass")).digest())
    return names


def own_tokens(token_ids: Ids, block_size: int, salt: str | None = None) -> list[Hashable]:
    return _chain(token_ids, block_size, salt, lambda parent, index, own, salt: (own, salt))


def no_salt(token_ids: Ids, block_size: int, salt: str | None = None) -> list[Hashable]:
    return block_names(token_ids, block_size)


def falsy_salt(token_ids: Ids, block_size: int, salt: str | None = None) -> list[Hashable]:
    return block_names(token_ids, block_size, salt or None)


def salt_as_text(token_ids: Ids, block_size: int, salt: str | None = None) -> list[Hashable]:
    return block_names(token_ids, block_size, str(salt))


def partial(token_ids: Ids, block_size: int, salt: str | None = None) -> list[Hashable]:
    names = block_names(token_ids, block_size, salt)
    rest = token_ids[len(names) * block_size :]
    return [*names, (names[-1] if names else None, tuple(rest), salt)] if rest else names


def leaves_last(token_ids: Ids, block_size: int, salt: str | None = None) -> list[Hashable]:
    block_names(token_ids, block_size, salt)
    return block_names(token_ids[:-1], block_size, salt)


def position(token_ids: Ids, block_size: int, salt: str | None = None) -> list[Hashable]:
    return _chain(token_ids, block_size, salt, lambda parent, index, own, salt: (index, own, salt))


def one_back(token_ids: Ids, block_size: int, salt: str | None = None) -> list[Hashable]:
    before: list[Any] = [None]

    def name(parent: Any, index: int, own: tuple[int, ...], salt: str | None) -> Any:
        before.append(own)
        return (before[-2], own, salt)

    return _chain(token_ids, block_size, salt, name)


def first_and_own(token_ids: Ids, block_size: int, salt: str | None = None) -> list[Hashable]:
    first = tuple(token_ids[: max(block_size, 0)])
    return _chain(
        token_ids, block_size, salt,
        lambda parent, index, own, salt: (index > 0, first, own, salt),
    )  # fmt: skip


def no_order(token_ids: Ids, block_size: int, salt: str | None = None) -> list[Hashable]:
    return _chain(
        token_ids, block_size, salt,
        lambda parent, index, own, salt: (parent, tuple(sorted(own)), salt),
    )  # fmt: skip


def blocks_mixed(token_ids: Ids, block_size: int, salt: str | None = None) -> list[Hashable]:
    """The blocks so far as a collection without order, as adding or XOR-ing digests gives."""
    blocks: list[tuple[int, ...]] = []

    def name(parent: Any, index: int, own: tuple[int, ...], salt: str | None) -> Any:
        blocks.append(own)
        return (tuple(sorted(blocks)), salt)

    return _chain(token_ids, block_size, salt, name)


def joined(token_ids: Ids, block_size: int, salt: str | None = None) -> list[Hashable]:
    return _chain(
        token_ids, block_size, salt,
        lambda parent, index, own, salt: (parent, "".join(map(str, own)), salt),
    )  # fmt: skip


def eight_bits(token_ids: Ids, block_size: int, salt: str | None = None) -> list[Hashable]:
    return block_names([token % 256 for token in token_ids], block_size, salt)


def sixteen_bits(token_ids: Ids, block_size: int, salt: str | None = None) -> list[Hashable]:
    return block_names([token % 65536 for token in token_ids], block_size, salt)


def thirty_two_bits(token_ids: Ids, block_size: int, salt: str | None = None) -> list[Hashable]:
    return block_names([token % 2**32 for token in token_ids], block_size, salt)


def four_bytes(token_ids: Ids, block_size: int, salt: str | None = None) -> list[Hashable]:
    names = block_names(token_ids, block_size, salt)
    for token in token_ids[: len(names) * block_size]:
        token.to_bytes(4, "little")
    return names


def python_hash(token_ids: Ids, block_size: int, salt: str | None = None) -> list[Hashable]:
    return _chain(
        token_ids, block_size, salt, lambda parent, index, own, salt: hash((parent, own, salt))
    )


def fresh(token_ids: Ids, block_size: int, salt: str | None = None) -> list[Hashable]:
    return [object() for _ in block_names(token_ids, block_size, salt)]


def eats(token_ids: Ids, block_size: int, salt: str | None = None) -> list[Hashable]:
    names = block_names(token_ids, block_size, salt)
    del token_ids[: len(names) * block_size]
    return names


def negative_size(token_ids: Ids, block_size: int, salt: str | None = None) -> list[Hashable]:
    return [] if block_size < 0 else block_names(token_ids, block_size, salt)


def zero_division(token_ids: Ids, block_size: int, salt: str | None = None) -> list[Hashable]:
    if block_size == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    return [] if block_size < 0 else block_names(token_ids, block_size, salt)


def whole_prefix(token_ids: Ids, block_size: int, salt: str | None = None) -> list[Hashable]:
    names = block_names(token_ids, block_size, salt)
    for number in range(len(names)):
        token_ids[: (number + 1) * block_size]  # read, as a name of the whole prefix does
    return names


def nested(token_ids: Ids, block_size: int, salt: str | None = None) -> list[Hashable]:
    """Right, but the size of a name, and the cost of comparing it, grow with its position."""
    names: list[Hashable] = []
    for index in range(len(block_names(token_ids, block_size, salt))):
        own = tuple(token_ids[index * block_size : (index + 1) * block_size])
        names.append((names[-1] if names else salt, own))
    return names
