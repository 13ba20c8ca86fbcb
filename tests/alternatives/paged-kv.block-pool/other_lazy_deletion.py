"""A queue of tickets: a block that leaves in the middle only lets its ticket lapse."""

from collections import deque
from itertools import count as count_up

from mini_engine.interfaces import OutOfBlocks


class BlockPool:
    def __init__(self, num_blocks):
        if isinstance(num_blocks, bool) or not isinstance(num_blocks, int):
            raise TypeError("the number of blocks is an int")
        if num_blocks <= 0:
            raise ValueError("a pool has at least one block")
        self.num_blocks = num_blocks
        self._numbers = count_up()
        self._tickets = deque()
        self._valid = {}
        self._holders = {}
        for block_id in range(num_blocks):
            self._queue_up(block_id, self._tickets.append)

    def _queue_up(self, block_id, put):
        ticket = next(self._numbers), block_id
        self._valid[block_id] = ticket
        put(ticket)

    def _known(self, block_id):
        if block_id not in range(self.num_blocks):
            raise ValueError(f"{block_id} is outside the pool")

    @property
    def num_free(self):
        return self.num_blocks - len(self._holders)

    def allocate(self, count):
        if count < 0:
            raise ValueError("less than nothing was asked for")
        if self.num_free < count:
            raise OutOfBlocks(f"short by {count - self.num_free}")
        taken = []
        while len(taken) < count:
            ticket = self._tickets.popleft()
            block_id = ticket[1]
            if self._valid.get(block_id) == ticket:
                del self._valid[block_id]
                self._holders[block_id] = 1
                taken.append(block_id)
        return taken

    def share(self, block_id):
        self._known(block_id)
        self._valid.pop(block_id, None)
        self._holders[block_id] = self._holders.get(block_id, 0) + 1

    def free(self, block_id, *, to_front=True):
        self._known(block_id)
        if block_id not in self._holders:
            raise ValueError(f"nobody holds block {block_id}")
        left = self._holders.pop(block_id) - 1
        if left:
            self._holders[block_id] = left
        else:
            queue = self._tickets
            self._queue_up(block_id, queue.appendleft if to_front else queue.append)

    def ref_count(self, block_id):
        self._known(block_id)
        return self._holders.get(block_id, 0)

    def free_block_ids(self):
        return [
            block_id for ticket in self._tickets if self._valid.get(block_id := ticket[1]) == ticket
        ]
