"""Owns another way to find blocks again: a radix tree of token runs, as SGLang keeps it.

A part for the slot `prefix_cache`, with the contract of interfaces.PrefixCache. Compare SGLang's
`RadixCache` in `sglang/srt/mem_cache/radix_cache.py`. What differs from there: a lookup moves
nothing (an admission does), and blocks enter the tree when they are allocated for the step that
fills them, so that requests of the same step can share them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile

from mini_engine.config import require_int
from mini_engine.control.radix_tree import Node, RadixTree, Tokens
from mini_engine.control.request import Request
from mini_engine.interfaces import BlockPool, BrokenInvariant


class RadixCache:
    """Block tables and a radix tree on top of a pool; "named" means: in the tree.

    Compared with a chain of hashes: tokens are compared, so nothing can collide; and the tree keeps
    one block for the same tokens. A request that computed what was there already exchanges its own
    block for the tree's, once its own is written, so a table may change before its end.
    Idle blocks of the tree are free in the pool, and stand behind all other free ones there.
    """

    def __init__(self, pool: BlockPool, block_size: int, *, enabled: bool = True) -> None:
        require_int("RadixCache", "block_size", block_size, 1)
        self.pool = pool
        self.block_size = block_size
        self.enabled = enabled
        self.tree = RadixTree()
        self._ends: dict[str, Node] = {}  # by request id: the node at whose end it is attached
        self._young: dict[int, str] = {}  # blocks that entered in this step, with their request

    def lookup(self, request: Request) -> list[int]:
        """The blocks that already hold the start of the request's tokens; changes nothing.

        At most `num_tokens - 1` tokens, because the logits of the last token have to be computed.
        """
        if not self.enabled:
            return []
        run = self._run(request, 0, (request.num_tokens - 1) // self.block_size)
        found = self.tree.match(self.tree.roots.get(request.cache_salt), run)
        return [block_id for node, length in found for block_id in node.blocks[:length]]

    def admit(self, request: Request, hit: list[int]) -> None:
        """Make the blocks of a lookup the start of the request's (empty) block table.

        This is where a node is split: the request holds what it hit and nothing behind it.
        """
        if request.block_table:
            raise ValueError(f"request {request.request_id} holds blocks; release them first")
        end = self.tree.root(request.cache_salt)
        if hit:
            end = self.tree.node_of[hit[-1]]
            end = self.tree.split(end, end.blocks.index(hit[-1]) + 1)
        for block_id in hit:
            self.pool.share(block_id)
        self.tree.lock(end.path())
        self._ends[request.request_id] = end
        request.block_table.extend(hit)
        request.num_named = len(hit)

    def can_grow(self, request: Request, num_tokens: int) -> bool:
        """Whether `grow` would find the free blocks it needs."""
        return self._missing(request, num_tokens) <= self.pool.num_free

    def grow(self, request: Request, num_tokens: int) -> None:
        """Give the request the blocks for its first `num_tokens` tokens, and put full ones in.

        If too few blocks are free and not in the tree, the tree gives some up. Raises OutOfBlocks,
        changing nothing.
        """
        missing = self._missing(request, num_tokens)
        if missing > 0:
            short = missing - (self.pool.num_free - self.tree.num_idle)
            if 0 < short <= self.tree.num_idle:
                for block_id in self.tree.evict(short):
                    self._reuse_soon(block_id)
            request.block_table.extend(self.pool.allocate(missing))
        self._insert(request, num_tokens // self.block_size)

    def release(self, request: Request) -> None:
        """Take the request's blocks away, last to first; those in the tree are reused last."""
        if request.request_id in self._ends:
            self._insert(request, request.num_computed // self.block_size)
            self.tree.unlock(self._ends.pop(request.request_id).path())
        for block_id in reversed(request.block_table):
            self.pool.free(block_id, to_front=block_id not in self.tree.node_of)
        request.block_table.clear()
        request.num_named = 0

    def begin_step(self) -> None:
        """Forget which blocks are young; call it before the first `grow` of a step."""
        self._young.clear()

    def take_back_names(self, request: Request | None = None) -> None:
        """Take out what entered since `begin_step`, of one request or of all."""
        for block_id, owner in reversed(list(self._young.items())):  # children came after parents
            if request is None or owner == request.request_id:
                del self._young[block_id]
                self._take_out(block_id)

    def reset(self) -> bool:
        """Forget the tree. Refuses (False, nothing changes) while any block is in use."""
        if self.pool.num_free < self.pool.num_blocks:
            return False
        self.tree = RadixTree()
        self._young.clear()
        return True

    @property
    def num_names(self) -> int:
        """Blocks in the tree; at most the size of the pool."""
        return len(self.tree.node_of)

    def is_named(self, block_id: int) -> bool:
        """Whether the block may be found by a lookup."""
        return block_id in self.tree.node_of

    def _run(self, request: Request, start: int, end: int) -> Iterator[Tokens]:
        """The tokens of the request's blocks from `start` to before `end`."""
        size, token_ids = self.block_size, request.token_ids
        return (tuple(token_ids[i * size : (i + 1) * size]) for i in range(start, end))

    def _missing(self, request: Request, num_tokens: int) -> int:
        return -(-num_tokens // self.block_size) - len(request.block_table)

    def _insert(self, request: Request, num_full: int) -> None:
        """Put the request's first `num_full` blocks into the tree, as far as that is possible.

        Where the tree has a block already, the request's own is exchanged for it, but only once it
        is written; until then the request stays attached before it.
        """
        if not self.enabled or num_full <= request.num_named:
            return
        name, size = request.request_id, self.block_size
        self._exchange(request, min(num_full, request.num_computed // size))
        for tokens in self._run(request, request.num_named, num_full):
            block_id = request.block_table[request.num_named]
            end = self.tree.add(self._ends[name], tokens, block_id)
            if end is None:
                return
            self._ends[name] = end
            request.num_named += 1
            if request.num_named * size > request.num_computed:
                self._young[block_id] = name

    def _exchange(self, request: Request, num_written: int) -> None:
        """Take the tree's blocks in place of the request's own equal ones, which it has written."""
        table, name = request.block_table, request.request_id
        run = self._run(request, request.num_named, num_written)
        for node, length in self.tree.match(self._ends[name], run):
            old = list(takewhile(lambda b: b not in self._young, node.blocks[:length]))
            if not old:
                return
            upper = self.tree.split(node, len(old))
            self.tree.lock([upper])
            self._ends[name] = upper
            for block_id in old:
                self.pool.share(block_id)
                self.pool.free(table[request.num_named])
                table[request.num_named] = block_id
                request.num_named += 1
            if len(old) < length:
                return

    def _take_out(self, block_id: int) -> None:
        node = self.tree.node_of[block_id]
        self.tree.cut(node)
        if not node.blocks and node.parent is not None:
            for name, end in self._ends.items():
                if end is node:
                    self._ends[name] = node.parent
        if self.pool.ref_count(block_id) == 0:
            self._reuse_soon(block_id)

    def _reuse_soon(self, block_id: int) -> None:
        """Move a free block to the front of the free list, where those without a name are."""
        self.pool.share(block_id)
        self.pool.free(block_id)

    def check_invariants(self, requests: Iterable[Request]) -> None:
        """Raise BrokenInvariant unless pool, tree, tables and computed tokens agree.

        Call it between steps: during one, blocks of the tree may hold slots not yet written.
        """
        requests = list(requests)
        check_pool = getattr(self.pool, "check_invariants", None)
        if check_pool is not None:
            check_pool([request.block_table for request in requests])
        free = [self.is_named(block_id) for block_id in self.pool.free_block_ids()]
        if free != sorted(free) or sum(free) != self.tree.num_idle:
            raise BrokenInvariant(
                f"{self.tree.num_idle} blocks of the tree are idle; the free list, 1 for those in "
                f"the tree, is {[int(named) for named in free]}"
            )
        for block_id, node in self.tree.node_of.items():
            self._check_block(block_id, node)
        for request in requests:
            self._check_table(request)

    def _check_block(self, block_id: int, node: Node) -> None:
        top = node.path()[-1]
        if block_id not in node.blocks or len(node.blocks) != len(node.run):
            raise BrokenInvariant(f"block {block_id} leads to a node that does not hold it")
        if top not in self.tree.roots.values():
            raise BrokenInvariant(f"block {block_id} is in a branch that was cut off")
        if node.parent is None or node.parent.children.get(node.run[0]) is not node:
            raise BrokenInvariant(f"the node of block {block_id} is not found from its parent")
        if self.pool.ref_count(block_id) != node.locks:
            raise BrokenInvariant(
                f"block {block_id} is held {self.pool.ref_count(block_id)} times, its node has "
                f"{node.locks} locks"
            )

    def _check_table(self, request: Request) -> None:
        table, who, size = request.block_table, f"request {request.request_id}", self.block_size
        if len(set(table)) != len(table):
            raise BrokenInvariant(f"{who} holds a block twice: {table}")
        if request.num_computed > len(table) * size:
            raise BrokenInvariant(
                f"{who} has {request.num_computed} computed tokens in {len(table)} blocks of {size}"
            )
        for index, block_id in enumerate(table):
            node = self.tree.node_of.get(block_id)
            if (node is not None) != (index < request.num_named):
                raise BrokenInvariant(f"{who} has {request.num_named} named blocks: not {block_id}")
            if node is None and self.pool.ref_count(block_id) > 1:
                raise BrokenInvariant(f"block {block_id} is in two tables and not in the tree")
            if node is not None:
                if (index + 1) * size > request.num_computed:
                    raise BrokenInvariant(f"block {block_id} of {who} is named before it is full")
                tokens = node.run[node.blocks.index(block_id)]
                if list(tokens) != request.token_ids[index * size : (index + 1) * size]:
                    raise BrokenInvariant(f"block {block_id} of {who} is named after other tokens")
