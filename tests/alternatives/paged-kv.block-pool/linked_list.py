"""A doubly linked list in two arrays, with a sentinel: every operation in constant time."""

from mini_engine.interfaces import OutOfBlocks


class BlockPool:
    def __init__(self, num_blocks: int) -> None:
        if isinstance(num_blocks, bool) or not isinstance(num_blocks, int):
            raise TypeError("num_blocks must be an int")
        if num_blocks < 1:
            raise ValueError("num_blocks must be 1 or more")
        self.num_blocks = num_blocks
        self._end = num_blocks  # the sentinel, before the first and behind the last
        self._next = [*range(1, num_blocks + 1), 0]
        self._previous = [num_blocks, *range(num_blocks)]
        self._holders = [0] * num_blocks
        self._num_free = num_blocks

    @property
    def num_free(self) -> int:
        return self._num_free

    def allocate(self, count: int) -> list[int]:
        if count < 0:
            raise ValueError("negative count")
        if count > self._num_free:
            raise OutOfBlocks(f"{count} of {self._num_free}")
        taken = []
        for _ in range(count):
            first = self._next[self._end]
            self._unlink(first)
            self._holders[first] = 1
            taken.append(first)
        return taken

    def share(self, block_id: int) -> None:
        if self.ref_count(block_id) == 0:
            self._unlink(block_id)
        self._holders[block_id] += 1

    def free(self, block_id: int, *, to_front: bool = True) -> None:
        if self.ref_count(block_id) == 0:
            raise ValueError("free already")
        self._holders[block_id] -= 1
        if self._holders[block_id]:
            return
        left = self._end if to_front else self._previous[self._end]
        right = self._next[left]
        self._next[left] = self._previous[right] = block_id
        self._previous[block_id], self._next[block_id] = left, right
        self._num_free += 1

    def ref_count(self, block_id: int) -> int:
        if block_id not in range(self.num_blocks):
            raise ValueError("no such block")
        return self._holders[block_id]

    def free_block_ids(self) -> list[int]:
        found, at = [], self._next[self._end]
        while at != self._end:
            found.append(at)
            at = self._next[at]
        return found

    def _unlink(self, block_id: int) -> None:
        left, right = self._previous[block_id], self._next[block_id]
        self._next[left], self._previous[right] = right, left
        self._num_free -= 1
