"""Counts only for held blocks; a plain dict keeps the order of the free ones."""

from collections import Counter

from mini_engine.config import require_int
from mini_engine.interfaces import OutOfBlocks


class BlockPool:
    def __init__(self, num_blocks: int) -> None:
        require_int("pool", "num_blocks", num_blocks, 1)
        self.num_blocks = num_blocks
        self.held: Counter[int] = Counter()
        self.idle = dict.fromkeys(range(num_blocks))

    num_free = property(lambda self: self.num_blocks - len(self.held))

    def allocate(self, count: int) -> list[int]:
        if count < 0:
            raise ValueError(count)
        if len(self.idle) < count:
            raise OutOfBlocks(count)
        picked = [block for block, _ in zip(self.idle, range(count), strict=False)]
        for block in picked:
            self.share(block)
        return picked

    def share(self, block_id: int) -> None:
        self.ref_count(block_id)
        self.idle.pop(block_id, None)
        self.held[block_id] += 1

    def free(self, block_id: int, *, to_front: bool = True) -> None:
        if not self.ref_count(block_id):
            raise ValueError(f"{block_id} twice")
        self.held -= Counter({block_id: 1})  # drops what reaches 0
        if block_id not in self.held:
            before = {} if to_front else self.idle
            after = self.idle if to_front else {}
            self.idle = {**before, block_id: None, **after}

    def ref_count(self, block_id: int) -> int:
        if not 0 <= block_id < self.num_blocks:
            raise ValueError(block_id)
        return self.held[block_id] if block_id in self.held else 0

    def free_block_ids(self) -> list[int]:
        return [*self.idle]
