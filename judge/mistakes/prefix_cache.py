"""Owns the known mistakes of `prefix-cache.cache`: each is wrong in the one way its name says.

They stand on a plain cache of their own, so that the reference's insides may change.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from judge.solutions.prefix_cache import block_names, longest_hit
from mini_engine.config import require_int
from mini_engine.control.request import Request
from mini_engine.interfaces import BlockPool


class PlainCache:
    """Right, but for what its subclasses break."""

    def __init__(self, pool: BlockPool, block_size: int, *, enabled: bool = True) -> None:
        require_int("PrefixCache", "block_size", block_size, 1)
        self.pool = pool
        self.block_size = block_size
        self.enabled = enabled
        self.blocks_of: dict[Hashable, list[int]] = {}
        self.name_of: dict[int, Hashable] = {}
        self.young: dict[int, str] = {}  # block -> request_id

    def names(self, request: Request) -> list[Hashable]:
        return block_names(request.token_ids, self.block_size, request.cache_salt)

    def lookup(self, request: Request) -> list[int]:
        if not self.enabled:
            return []
        return longest_hit(self.names(request), request.num_tokens, self.block_size, self.blocks_of)

    def admit(self, request: Request, hit: list[int]) -> None:
        if request.block_table:
            raise ValueError(f"{request.request_id} holds blocks")
        for block in hit:
            self.hold(block)
        request.block_table = list(hit)
        request.num_named = len(hit)

    def hold(self, block: int) -> None:
        self.pool.share(block)

    def missing(self, request: Request, num_tokens: int) -> int:
        return max(0, -(-num_tokens // self.block_size) - len(request.block_table))

    def can_grow(self, request: Request, num_tokens: int) -> bool:
        return self.missing(request, num_tokens) <= self.pool.num_free

    def grow(self, request: Request, num_tokens: int) -> None:
        for block in self.pool.allocate(self.missing(request, num_tokens)):
            self.forget(block)
            request.block_table.append(block)
        self.name_blocks(request, num_tokens // self.block_size)

    def name_blocks(self, request: Request, num_full: int) -> None:
        """Name the first `num_full` blocks of the table, as far as they have no name."""
        if not self.enabled:
            return
        names = self.names(request)[:num_full]
        for index in range(request.num_named, min(len(names), len(request.block_table))):
            self.give(request, request.block_table[index], names[index])
        request.num_named = max(request.num_named, num_full)

    def give(self, request: Request, block: int, name: Hashable) -> None:
        self.blocks_of.setdefault(name, []).append(block)
        self.name_of[block] = name
        self.young[block] = request.request_id

    def forget(self, block: int) -> None:
        name = self.name_of.pop(block, None)
        if name is not None:
            self.blocks_of[name].remove(block)
            if not self.blocks_of[name]:
                del self.blocks_of[name]

    def release(self, request: Request) -> None:
        for block in self.in_order(request.block_table):
            self.pool.free(block, to_front=self.to_front(block))
        request.block_table = []
        request.num_named = 0

    def in_order(self, table: list[int]) -> list[int]:
        return table[::-1]

    def to_front(self, block: int) -> bool:
        return block not in self.name_of

    def begin_step(self) -> None:
        self.young = {}

    def take_back_names(self, request: Request | None = None) -> None:
        for block, owner in list(self.young.items()):
            if request is None or owner == request.request_id:
                del self.young[block]
                self.forget(block)

    def is_named(self, block_id: int) -> bool:
        return block_id in self.name_of

    def reset(self) -> bool:
        if self.pool.num_free < self.pool.num_blocks:
            return False
        self.blocks_of, self.name_of, self.young = {}, {}, {}
        return True


class RenamingCache(PlainCache):
    """Each grow names whatever full block has no name, not only those behind `num_named`.

    Right as well; some mistakes show in another way here.
    """

    def name_blocks(self, request: Request, num_full: int) -> None:
        if not self.enabled:
            return
        for block, name in zip(request.block_table[:num_full], self.names(request), strict=False):
            if block not in self.name_of:
                self.give(request, block, name)


class OwnTokens(PlainCache):
    def names(self, request: Request) -> list[Hashable]:
        size, ids = self.block_size, request.token_ids
        count = len(ids) // size
        return [(tuple(ids[i * size : (i + 1) * size]), request.cache_salt) for i in range(count)]


class NoSalt(PlainCache):
    def names(self, request: Request) -> list[Hashable]:
        return block_names(request.token_ids, self.block_size)


class FalsySalt(PlainCache):
    def names(self, request: Request) -> list[Hashable]:
        return block_names(request.token_ids, self.block_size, request.cache_salt or None)


class PythonHash(PlainCache):
    def names(self, request: Request) -> list[Hashable]:
        ids = [hash(token) for token in request.token_ids]
        return block_names(ids, self.block_size, request.cache_salt)


class WholePrompt(PlainCache):
    def lookup(self, request: Request) -> list[int]:
        names, total = self.names(request), request.num_tokens
        return longest_hit(names, total + 1, self.block_size, self.blocks_of)


class AlwaysOneLess(PlainCache):
    def lookup(self, request: Request) -> list[int]:
        names, total = self.names(request)[:-1], request.num_tokens
        return longest_hit(names, total, self.block_size, self.blocks_of)


class Newest(PlainCache):
    def lookup(self, request: Request) -> list[int]:
        hit = super().lookup(request)
        return [self.blocks_of[self.name_of[block]][-1] for block in hit]


class LastWins(PlainCache):
    """The older block keeps its name, but the name no longer leads to it."""

    def give(self, request: Request, block: int, name: Hashable) -> None:
        self.blocks_of[name] = [block]
        self.name_of[block] = name
        self.young[block] = request.request_id

    def forget(self, block: int) -> None:
        name = self.name_of.pop(block, None)
        if name is not None and self.blocks_of.get(name) == [block]:
            del self.blocks_of[name]


class FirstWins(PlainCache):
    """A second block gets no name."""

    def give(self, request: Request, block: int, name: Hashable) -> None:
        if name not in self.blocks_of:
            super().give(request, block, name)


class FirstWinsLater(RenamingCache):
    """A second block gets no name as long as the first has it."""

    def give(self, request: Request, block: int, name: Hashable) -> None:
        if name not in self.blocks_of:
            super().give(request, block, name)


class NamesPartial(PlainCache):
    def names(self, request: Request) -> list[Hashable]:
        names = super().names(request)
        rest = request.token_ids[len(names) * self.block_size :]
        return [*names, (names[-1] if names else None, tuple(rest))] if rest else names

    def name_blocks(self, request: Request, num_full: int) -> None:
        super().name_blocks(request, len(request.block_table))


class NamedEarly(PlainCache):
    def name_blocks(self, request: Request, num_full: int) -> None:
        known = request.num_tokens // self.block_size
        super().name_blocks(request, min(known, len(request.block_table)))


class NamedLate(PlainCache):
    def name_blocks(self, request: Request, num_full: int) -> None:
        super().name_blocks(request, request.num_computed // self.block_size)


class PromptOnly(PlainCache):
    def names(self, request: Request) -> list[Hashable]:
        return block_names(request.prompt_token_ids, self.block_size, request.cache_salt)


class StaleName(RenamingCache):
    """A block that has a name keeps it, whatever it holds now."""

    def grow(self, request: Request, num_tokens: int) -> None:
        request.block_table += self.pool.allocate(self.missing(request, num_tokens))
        self.name_blocks(request, num_tokens // self.block_size)


class StaleTable(PlainCache):
    """The block gets a new name, but the old one still leads to it."""

    def grow(self, request: Request, num_tokens: int) -> None:
        for block in self.pool.allocate(self.missing(request, num_tokens)):
            self.name_of.pop(block, None)
            request.block_table.append(block)
        self.name_blocks(request, num_tokens // self.block_size)

    def give(self, request: Request, block: int, name: Hashable) -> None:
        if block in self.blocks_of.get(name, []):
            self.blocks_of[name].remove(block)
        super().give(request, block, name)


class StaleTableAgeless(StaleTable):
    """The same, where a block that gets an old name again keeps its place under it."""

    def give(self, request: Request, block: int, name: Hashable) -> None:
        if block not in self.blocks_of.setdefault(name, []):
            self.blocks_of[name].append(block)
        self.name_of[block] = name
        self.young[block] = request.request_id


class StaleTableRenames(StaleTableAgeless, RenamingCache):
    pass


class LostOnRelease(PlainCache):
    def release(self, request: Request) -> None:
        for block in request.block_table:
            if self.pool.ref_count(block) == 1:
                self.forget(block)
        super().release(request)


class Unbounded(PlainCache):
    """Lookups skip blocks that have another name by now."""

    def lookup(self, request: Request) -> list[int]:
        hit: list[int] = []
        if not self.enabled:
            return hit
        for name in self.names(request)[: (request.num_tokens - 1) // self.block_size]:
            blocks = [b for b in self.blocks_of.get(name, []) if self.name_of.get(b) == name]
            if not blocks:
                break
            hit.append(blocks[0])
        return hit

    def give(self, request: Request, block: int, name: Hashable) -> None:
        if block in self.blocks_of.get(name, []):
            self.blocks_of[name].remove(block)
        super().give(request, block, name)

    def forget(self, block: int) -> None:
        self.name_of.pop(block, None)


class FirstToLast(PlainCache):
    def in_order(self, table: list[int]) -> list[int]:
        return list(table)


class AllToFront(PlainCache):
    def to_front(self, block: int) -> bool:
        return True


class AllToBack(PlainCache):
    def to_front(self, block: int) -> bool:
        return False


class EndsSwapped(PlainCache):
    def to_front(self, block: int) -> bool:
        return block in self.name_of


class LookupShares(PlainCache):
    def lookup(self, request: Request) -> list[int]:
        hit = super().lookup(request)
        for block in hit:
            self.pool.share(block)
        return hit

    def hold(self, block: int) -> None:
        pass


class LookupTouches(PlainCache):
    def lookup(self, request: Request) -> list[int]:
        hit = super().lookup(request)
        for block in reversed(hit):
            if self.pool.ref_count(block) == 0:
                self.pool.share(block)
                self.pool.free(block, to_front=False)
        return hit


class NoShare(PlainCache):
    def hold(self, block: int) -> None:
        pass


class SharesUsedOnly(PlainCache):
    def hold(self, block: int) -> None:
        if self.pool.ref_count(block) > 0:
            self.pool.share(block)


class NoShareRenames(NoShare, RenamingCache):
    pass


class SharesUsedOnlyRenames(SharesUsedOnly, RenamingCache):
    pass


class AdmitsTwice(PlainCache):
    def admit(self, request: Request, hit: list[int]) -> None:
        for block in hit:
            self.hold(block)
        request.block_table += hit
        request.num_named = len(hit)


class KeepsHit(PlainCache):
    def admit(self, request: Request, hit: list[int]) -> None:
        super().admit(request, hit)
        request.block_table = hit


class ForgetsTable(PlainCache):
    def can_grow(self, request: Request, num_tokens: int) -> bool:
        return -(-num_tokens // self.block_size) <= self.pool.num_free


class OneTooMany(PlainCache):
    def can_grow(self, request: Request, num_tokens: int) -> bool:
        return self.missing(request, num_tokens) < self.pool.num_free


class RoundsDown(PlainCache):
    def missing(self, request: Request, num_tokens: int) -> int:
        return max(0, num_tokens // self.block_size - len(request.block_table))


class RoundsUp(PlainCache):
    def missing(self, request: Request, num_tokens: int) -> int:
        return max(0, num_tokens // self.block_size + 1 - len(request.block_table))


class TakesThenRaises(PlainCache):
    def grow(self, request: Request, num_tokens: int) -> None:
        for _ in range(self.missing(request, num_tokens)):
            (block,) = self.pool.allocate(1)
            self.forget(block)
            request.block_table.append(block)
        super().grow(request, num_tokens)


class KeepsFailedNames(PlainCache):
    def take_back_names(self, request: Request | None = None) -> None:
        pass


class TakesOldNames(PlainCache):
    def take_back_names(self, request: Request | None = None) -> None:
        if request is not None:
            for block in request.block_table:
                self.forget(block)
            return
        for block in list(self.name_of):
            if self.pool.ref_count(block) > 0:
                self.forget(block)


class TakesEverybodys(PlainCache):
    def take_back_names(self, request: Request | None = None) -> None:
        super().take_back_names()


class TakesEverybodysRenames(RenamingCache):
    def take_back_names(self, request: Request | None = None) -> None:
        super().take_back_names()


class ForeverYoung(PlainCache):
    def begin_step(self) -> None:
        pass


class ForeverYoungRenames(RenamingCache):
    def begin_step(self) -> None:
        pass


class KeepsNumNamed(PlainCache):
    def release(self, request: Request) -> None:
        named = request.num_named
        super().release(request)
        request.num_named = named

    def admit(self, request: Request, hit: list[int]) -> None:
        named = request.num_named
        super().admit(request, hit)
        request.num_named = max(named, len(hit))


class ByRequestId(PlainCache):
    def __init__(self, pool: BlockPool, block_size: int, *, enabled: bool = True) -> None:
        super().__init__(pool, block_size, enabled=enabled)
        self.kept: dict[str, list[Hashable]] = {}

    def names(self, request: Request) -> list[Hashable]:
        kept = self.kept.setdefault(request.request_id, [])
        size, ids = self.block_size, request.token_ids
        while (len(kept) + 1) * size <= len(ids):
            own = tuple(ids[len(kept) * size : (len(kept) + 1) * size])
            kept.append((kept[-1] if kept else None, own, request.cache_salt))
        return kept


class ResetInUse(PlainCache):
    def reset(self) -> bool:
        self.blocks_of, self.name_of, self.young = {}, {}, {}
        return True


class ResetInUseRenames(RenamingCache):
    def reset(self) -> bool:
        self.blocks_of, self.name_of, self.young = {}, {}, {}
        return True


class ResetKeeps(PlainCache):
    def reset(self) -> bool:
        return self.pool.num_free == self.pool.num_blocks


class AlwaysEnabled(PlainCache):
    def __init__(self, pool: BlockPool, block_size: int, *, enabled: bool = True) -> None:
        super().__init__(pool, block_size)


class KeepsTable(PlainCache):
    def release(self, request: Request) -> None:
        table: Any = list(request.block_table)
        super().release(request)
        request.block_table = table


class NeverForgets(PlainCache):
    """A new name replaces the old one in `name_of`, but the old one still leads to the block."""

    def grow(self, request: Request, num_tokens: int) -> None:
        request.block_table += self.pool.allocate(self.missing(request, num_tokens))
        self.name_blocks(request, num_tokens // self.block_size)


class NamedOnce(PlainCache):
    """A block stands at most once under a name."""

    def give(self, request: Request, block: int, name: Hashable) -> None:
        if block not in self.blocks_of.setdefault(name, []):
            self.blocks_of[name].append(block)
        self.name_of[block] = name
        self.young[block] = request.request_id


class NeverForgetsOnce(NeverForgets, NamedOnce):
    pass


class AdmitCountsNone(PlainCache):
    def admit(self, request: Request, hit: list[int]) -> None:
        super().admit(request, hit)
        request.num_named = 0


class AdmitCountsNoneOnce(AdmitCountsNone, NamedOnce):
    pass


class ForgetsAll(PlainCache):
    def forget(self, block: int) -> None:
        self.blocks_of.pop(self.name_of.pop(block, None), None)


class ForgetsAllOrFails(PlainCache):
    """The second block of a name ends in a KeyError."""

    def forget(self, block: int) -> None:
        name = self.name_of.pop(block, None)
        if name is not None:
            del self.blocks_of[name]


class OneTokenLate(PlainCache):
    def grow(self, request: Request, num_tokens: int) -> None:
        for block in self.pool.allocate(self.missing(request, num_tokens)):
            self.forget(block)
            request.block_table.append(block)
        self.name_blocks(request, (num_tokens - 1) // self.block_size)


class NamedByNextGrow(PlainCache):
    """Each grow names the blocks that were full before it."""

    def __init__(self, pool: BlockPool, block_size: int, *, enabled: bool = True) -> None:
        super().__init__(pool, block_size, enabled=enabled)
        self.goals: dict[str, int] = {}

    def grow(self, request: Request, num_tokens: int) -> None:
        before = self.goals.get(request.request_id, 0)
        for block in self.pool.allocate(self.missing(request, num_tokens)):
            self.forget(block)
            request.block_table.append(block)
        self.name_blocks(request, before // self.block_size)
        self.goals[request.request_id] = num_tokens

    def release(self, request: Request) -> None:
        self.goals.pop(request.request_id, None)
        super().release(request)


class NamedByNextGrowRenames(NamedByNextGrow, RenamingCache):
    pass


class CeilCounts(PlainCache):
    """Nothing names the block again when it is full."""

    def grow(self, request: Request, num_tokens: int) -> None:
        super().grow(request, num_tokens)
        self.name_blocks(request, -(-num_tokens // self.block_size))


class SharesTwice(PlainCache):
    def lookup(self, request: Request) -> list[int]:
        hit = super().lookup(request)
        for block in hit:
            self.pool.share(block)
        return hit


class TakesAndLoses(PlainCache):
    """The blocks taken before the error stand in no table."""

    def grow(self, request: Request, num_tokens: int) -> None:
        new = [self.pool.allocate(1)[0] for _ in range(self.missing(request, num_tokens))]
        for block in new:
            self.forget(block)
        request.block_table += new
        super().grow(request, num_tokens)


class TakesThenForgets(PlainCache):
    """The blocks taken before the error keep their names."""

    def grow(self, request: Request, num_tokens: int) -> None:
        held = len(request.block_table)
        for _ in range(self.missing(request, num_tokens)):
            request.block_table += self.pool.allocate(1)
        for block in request.block_table[held:]:
            self.forget(block)
        super().grow(request, num_tokens)


class TakesNoneForAll(PlainCache):
    def take_back_names(self, request: Request | None = None) -> None:
        if request is not None:
            super().take_back_names(request)
