# mistake: none
# Counts are kept for held blocks only, so an id outside the pool has count 0.

from collections import deque

from mini_engine.interfaces import OutOfBlocks


class BlockPool:
    def __init__(self, num_blocks):
        if type(num_blocks) is not int:
            raise TypeError("num_blocks must be an int")
        if num_blocks < 1:
            raise ValueError("num_blocks must be 1 or more")
        self.num_blocks = num_blocks
        self.queue = deque(range(num_blocks))
        self.counts = {}

    @property
    def num_free(self):
        return len(self.queue)

    def allocate(self, count):
        if count < 0:
            raise ValueError("count must be 0 or more")
        if count > len(self.queue):
            raise OutOfBlocks(f"{count} wanted, {len(self.queue)} free")
        blocks = [self.queue.popleft() for _ in range(count)]
        for block in blocks:
            self.counts[block] = 1
        return blocks

    def share(self, block_id):
        if not 0 <= block_id < self.num_blocks:
            raise ValueError(f"no block {block_id}")
        if self.ref_count(block_id) == 0:
            self.queue.remove(block_id)
        self.counts[block_id] = self.ref_count(block_id) + 1

    def free(self, block_id, *, to_front=True):
        if self.ref_count(block_id) == 0:
            raise ValueError(f"block {block_id} is free already")
        self.counts[block_id] -= 1
        if self.counts[block_id] == 0:
            if to_front:
                self.queue.appendleft(block_id)
            else:
                self.queue.append(block_id)

    def ref_count(self, block_id):
        return self.counts.get(block_id, 0)

    def free_block_ids(self):
        return list(self.queue)
