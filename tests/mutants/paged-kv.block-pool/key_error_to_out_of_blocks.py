# mistake: allocate takes blocks before it raises
"""Pops until popitem fails, and turns its error into the right one, too late."""

from collections import OrderedDict

from mini_engine.interfaces import OutOfBlocks


class BlockPool:
    def __init__(self, num_blocks):
        if type(num_blocks) is not int:
            raise TypeError(f"num_blocks must be an int, got {num_blocks!r}")
        if num_blocks < 1:
            raise ValueError(f"num_blocks must be 1 or more, got {num_blocks}")
        self.num_blocks = num_blocks
        self.refs = [0] * num_blocks
        self.queue = OrderedDict.fromkeys(range(num_blocks))

    @property
    def num_free(self):
        return len(self.queue)

    def allocate(self, count):
        if count < 0:
            raise ValueError(f"count is {count}")
        blocks = []
        try:
            for _ in range(count):
                blocks.append(self.queue.popitem(last=False)[0])
        except KeyError:
            raise OutOfBlocks(f"{count} wanted") from None
        for block in blocks:
            self.refs[block] = 1
        return blocks

    def share(self, block_id):
        self._check(block_id)
        if self.refs[block_id] == 0:
            del self.queue[block_id]
        self.refs[block_id] += 1

    def free(self, block_id, *, to_front=True):
        self._check(block_id)
        if self.refs[block_id] == 0:
            raise ValueError(f"block {block_id} is not in use")
        self.refs[block_id] -= 1
        if self.refs[block_id] == 0:
            self.queue[block_id] = None
            if to_front:
                self.queue.move_to_end(block_id, last=False)

    def ref_count(self, block_id):
        self._check(block_id)
        return self.refs[block_id]

    def free_block_ids(self):
        return list(self.queue)

    def _check(self, block_id):
        if block_id < 0 or block_id >= self.num_blocks:
            raise ValueError(f"no block {block_id}")
