"""Owns the known mistakes of `paged-kv.block-pool`: each is wrong in the one way its name says."""

from __future__ import annotations

from mini_engine.control.block_pool import BlockPool
from mini_engine.interfaces import OutOfBlocks


class SilentDoubleFree(BlockPool):
    def free(self, block_id: int, *, to_front: bool = True) -> None:
        if self.ref_count(block_id) > 0:
            super().free(block_id, to_front=to_front)


class PlainPool:
    """A plain list and counts without any check, for the mistakes that need such a body."""

    def __init__(self, num_blocks: int) -> None:
        BlockPool(num_blocks)  # the same refusals
        self.num_blocks = num_blocks
        self.counts = [0] * num_blocks
        self.waiting = list(range(num_blocks))

    @property
    def num_free(self) -> int:
        return len(self.waiting)

    def allocate(self, count: int) -> list[int]:
        BlockPool.allocate(_copy(self), count)  # the same refusals
        taken, self.waiting = self.waiting[:count], self.waiting[count:]
        for block_id in taken:
            self.counts[block_id] = 1
        return taken

    def share(self, block_id: int) -> None:
        if self.ref_count(block_id) == 0:
            self.waiting.remove(block_id)
        self.counts[block_id] += 1

    def free(self, block_id: int, *, to_front: bool = True) -> None:
        self.ref_count(block_id)
        self.counts[block_id] -= 1
        if self.counts[block_id] <= 0:
            self.counts[block_id] = 0
            self.waiting.insert(0 if to_front else len(self.waiting), block_id)

    def ref_count(self, block_id: int) -> int:
        if not 0 <= block_id < self.num_blocks:
            raise ValueError(f"there is no block {block_id}")
        return self.counts[block_id]

    def free_block_ids(self) -> list[int]:
        return list(self.waiting)


def _copy(pool: PlainPool) -> BlockPool:
    """A reference pool with as many free blocks, to raise what the reference raises."""
    stand_in = BlockPool(pool.num_blocks)
    stand_in.allocate(max(0, pool.num_blocks - len(pool.waiting)))
    return stand_in


class BlockListedTwice(PlainPool):
    """A second free lists the block again: two requests will write into it."""


class CountBelowZero(PlainPool):
    def free(self, block_id: int, *, to_front: bool = True) -> None:
        self.ref_count(block_id)
        self.counts[block_id] -= 1
        if self.counts[block_id] == 0:
            self.waiting.insert(0 if to_front else len(self.waiting), block_id)


class AlwaysBack(BlockPool):
    def free(self, block_id: int, *, to_front: bool = True) -> None:
        super().free(block_id, to_front=False)


class AlwaysFront(BlockPool):
    def free(self, block_id: int, *, to_front: bool = True) -> None:
        super().free(block_id, to_front=True)


class EndsSwapped(BlockPool):
    def free(self, block_id: int, *, to_front: bool = True) -> None:
        super().free(block_id, to_front=not to_front)


class ShareKeepsFree(BlockPool):
    def share(self, block_id: int) -> None:
        self.ref_count(block_id)
        self._ref_counts[block_id] += 1


class ShareForgetsCount(BlockPool):
    def share(self, block_id: int) -> None:
        if self.ref_count(block_id) == 0:
            del self._free[block_id]
        else:
            self._ref_counts[block_id] += 1


class FreeIgnoresHolders(BlockPool):
    def free(self, block_id: int, *, to_front: bool = True) -> None:
        if self.ref_count(block_id) > 0:
            self._ref_counts[block_id] = 1
        super().free(block_id, to_front=to_front)


class SharedNeverFree(BlockPool):
    def __init__(self, num_blocks: int) -> None:
        super().__init__(num_blocks)
        self._stuck: set[int] = set()

    def share(self, block_id: int) -> None:
        if self.ref_count(block_id) > 0:
            self._stuck.add(block_id)
        super().share(block_id)

    def free(self, block_id: int, *, to_front: bool = True) -> None:
        super().free(block_id, to_front=to_front)
        if self._ref_counts[block_id] == 0 and block_id in self._stuck:
            del self._free[block_id]


class TakesThenRaises(BlockPool):
    def allocate(self, count: int) -> list[int]:
        if count > self.num_free:
            super().allocate(self.num_free)
        return super().allocate(count)


class FewerBlocks(BlockPool):
    def allocate(self, count: int) -> list[int]:
        return super().allocate(min(count, self.num_free))


class LastBlockKept(BlockPool):
    def allocate(self, count: int) -> list[int]:
        if count and count >= self.num_free:
            return super().allocate(self.num_blocks + 1)  # raises OutOfBlocks
        return super().allocate(count)


class TakesFromBack(BlockPool):
    def allocate(self, count: int) -> list[int]:
        kept = list(self._free)
        taken = kept[::-1][:count] if 0 <= count <= len(kept) else []
        for block_id in reversed(taken):
            self._free.move_to_end(block_id, last=False)
        return super().allocate(count)


class SortedFreeList(BlockPool):
    def free(self, block_id: int, *, to_front: bool = True) -> None:
        super().free(block_id, to_front=to_front)
        for other in sorted(self._free):
            self._free.move_to_end(other)


class NegativeIds(BlockPool):
    def ref_count(self, block_id: int) -> int:
        return super().ref_count(self._real(block_id))

    def share(self, block_id: int) -> None:
        super().share(self._real(block_id))

    def free(self, block_id: int, *, to_front: bool = True) -> None:
        super().free(self._real(block_id), to_front=to_front)

    def _real(self, block_id: int) -> int:
        return block_id + self.num_blocks if -self.num_blocks <= block_id < 0 else block_id


class NegativeCount(BlockPool):
    def allocate(self, count: int) -> list[int]:
        return super().allocate(max(count, 0))


class CheckedPlainPool(PlainPool):
    """The plain list again, right but for what its subclasses break."""

    def free(self, block_id: int, *, to_front: bool = True) -> None:
        if self.ref_count(block_id) == 0:
            raise ValueError(f"block {block_id} is free already")
        super().free(block_id, to_front=to_front)


class ShareKeepsListed(CheckedPlainPool):
    """In a plain list the block then stands twice once it is freed."""

    def share(self, block_id: int) -> None:
        self.ref_count(block_id)
        self.counts[block_id] += 1


class GivesListAway(CheckedPlainPool):
    def free_block_ids(self) -> list[int]:
        return self.waiting


class TakesUncounted(CheckedPlainPool):
    """Takes without counting: what was free is then neither free nor held."""

    def allocate(self, count: int) -> list[int]:
        if count > self.num_free:
            self.waiting.clear()
            raise OutOfBlocks("taken, then refused")
        return super().allocate(count)


class TakesUncountedKeys(TakesUncounted):
    """With a dictionary as the free list, a lost block is a key that is not there."""

    def share(self, block_id: int) -> None:
        if self.ref_count(block_id) == 0 and block_id not in self.waiting:
            raise KeyError(block_id)
        super().share(block_id)


class TakesUncountedQuietly(TakesUncounted):
    """Where removing what is not there is no error, sharing brings a lost block back."""

    def share(self, block_id: int) -> None:
        if self.ref_count(block_id) == 0 and block_id not in self.waiting:
            self.counts[block_id] = 1
        else:
            super().share(block_id)


class PythonErrorUncounted(TakesUncounted):
    def allocate(self, count: int) -> list[int]:
        try:
            return super().allocate(count)
        except OutOfBlocks:
            raise IndexError("pop from empty list") from None


class PythonError(BlockPool):
    def allocate(self, count: int) -> list[int]:
        if count < 0:
            raise ValueError("negative count")
        taken = []
        for _ in range(count):
            block_id = next(iter(self._free), None)
            if block_id is None:
                raise IndexError("pop from empty list")
            taken += super().allocate(1)
        return taken
