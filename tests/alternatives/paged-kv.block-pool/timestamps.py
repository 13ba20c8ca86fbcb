"""No list at all: every free block has a number that says where it queues."""

from mini_engine.interfaces import OutOfBlocks


class BlockPool:
    def __init__(self, num_blocks: int) -> None:
        if type(num_blocks) is not int:
            raise TypeError("an int, please")
        if num_blocks <= 0:
            raise ValueError("at least one block")
        self.num_blocks = num_blocks
        self.place: list[int | None] = [*range(num_blocks)]
        self.refs = [0] * num_blocks
        self.front, self.back = -1, num_blocks

    @property
    def num_free(self) -> int:
        return self.refs.count(0)

    def allocate(self, count: int) -> list[int]:
        if count < 0:
            raise ValueError("count < 0")
        order = self.free_block_ids()
        if count > len(order):
            raise OutOfBlocks("too many")
        for block in order[:count]:
            self.share(block)
        return order[:count]

    def share(self, block_id: int) -> None:
        self._known(block_id)
        self.refs[block_id] += 1
        self.place[block_id] = None

    def free(self, block_id: int, *, to_front: bool = True) -> None:
        self._known(block_id)
        if self.refs[block_id] < 1:
            raise ValueError("nobody holds it")
        self.refs[block_id] -= 1
        if self.refs[block_id] == 0 and to_front:
            self.place[block_id], self.front = self.front, self.front - 1
        elif self.refs[block_id] == 0:
            self.place[block_id], self.back = self.back, self.back + 1

    def ref_count(self, block_id: int) -> int:
        self._known(block_id)
        return self.refs[block_id]

    def free_block_ids(self) -> list[int]:
        waiting = [(p, b) for b, p in enumerate(self.place) if p is not None]
        return [block for _, block in sorted(waiting)]

    def _known(self, block_id: int) -> None:
        if not 0 <= block_id < self.num_blocks:
            raise ValueError("unknown block")
