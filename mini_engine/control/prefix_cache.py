"""Owns the names of full blocks: gives requests their blocks and finds them again for others.

A block's name says which tokens it holds *and* which came before it, so equal names mean equal KV.
Real engines trust a strong hash (vLLM: `vllm/v1/core/kv_cache_utils.py`, `hash_block_tokens`); here
a hit also compares the tokens, so even a colliding hash never serves foreign KV.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from mini_engine.config import require_int
from mini_engine.control.request import Request
from mini_engine.interfaces import BlockPool, BrokenInvariant

NameHash = Callable[[tuple[int, tuple[int, ...], str | None]], int]


@dataclass(eq=False, slots=True)
class BlockName:
    """(parent's name, the block's tokens, extra key), and the blocks that have it, oldest first.

    PrefixCache keeps one object per name, from its first block to its last, so the *identity* of
    the parent's name stands for all tokens before the block.
    """

    hash_value: int
    parent: BlockName | None = field(repr=False)
    tokens: tuple[int, ...]
    extra_key: str | None
    blocks: list[int]


class PrefixCache:
    """Block tables and block names on top of a pool; see interfaces.PrefixCache.

    With `enabled=False` no block gets a name, so every lookup is empty; the rest is the same.
    `hash_function` maps (parent's hash, tokens, extra key) to an int; tests pass a constant one.
    """

    def __init__(
        self,
        pool: BlockPool,
        block_size: int,
        *,
        enabled: bool = True,
        hash_function: NameHash = hash,
    ) -> None:
        require_int("PrefixCache", "block_size", block_size, 1)
        self.pool = pool
        self.block_size = block_size
        self.enabled = enabled
        self._hash = hash_function
        self._names: dict[int, list[BlockName]] = {}  # by hash; more than one if hashes collide
        self._name_of: dict[int, BlockName] = {}
        self._young: dict[int, str] = {}  # blocks named in this step, with their request's id
        self._looked_up: Request | None = None  # the last one, and the names found for it
        self._found: list[BlockName] = []

    def lookup(self, request: Request) -> list[int]:
        """The blocks that already hold the start of the request's tokens; changes nothing.

        At most `num_tokens - 1` tokens, because the logits of the last token have to be computed.
        """
        if not self.enabled:
            return []
        names = self._still_known(request)
        self._find_more(request, names, (request.num_tokens - 1) // self.block_size)
        return [name.blocks[0] for name in names]

    def admit(self, request: Request, hit: list[int]) -> None:
        """Make the blocks of a lookup the start of the request's (empty) block table."""
        if request.block_table:
            raise ValueError(f"request {request.request_id} holds blocks; release them first")
        share = self.pool.share
        for block_id in hit:
            share(block_id)
        request.block_table.extend(hit)
        request.num_named = len(hit)
        self._looked_up, self._found = None, []

    def can_grow(self, request: Request, num_tokens: int) -> bool:
        """Whether `grow` would find the free blocks it needs."""
        return self._missing(request, num_tokens) <= self.pool.num_free

    def grow(self, request: Request, num_tokens: int) -> None:
        """Give the request the blocks for its first `num_tokens` tokens, and name those now full.

        Named before they are filled: a later request of the *same* step may share them, because
        every layer writes all K and V before it attends. Raises OutOfBlocks, changing nothing.
        """
        missing = self._missing(request, num_tokens)
        if missing > 0:
            block_ids = self.pool.allocate(missing)
            for block_id in block_ids:
                self._forget(block_id)  # this is where an old name dies: its block is reused
            request.block_table.extend(block_ids)
        if self.enabled and num_tokens // self.block_size > request.num_named:
            self._name_full_blocks(request, num_tokens // self.block_size)

    def release(self, request: Request) -> None:
        """Take the request's blocks away, last to first.

        Unnamed blocks are reused first, named ones last; the end of a prefix before its start.
        """
        for block_id in reversed(request.block_table):
            self.pool.free(block_id, to_front=block_id not in self._name_of)
        request.block_table.clear()
        request.num_named = 0

    def begin_step(self) -> None:
        """Forget which names are young; call it before the first `grow` of a step."""
        self._young.clear()

    def take_back_names(self, request: Request | None = None) -> None:
        """Remove the names given since `begin_step`, to one request or to all."""
        for block_id, owner in list(self._young.items()):
            if request is None or owner == request.request_id:
                del self._young[block_id]
                self._forget(block_id)

    def reset(self) -> bool:
        """Forget all names. Refuses (False, nothing changes) while any block is in use."""
        if self.pool.num_free < self.pool.num_blocks:
            return False
        self._names.clear()
        self._name_of.clear()
        self._young.clear()
        self._looked_up = None
        return True

    @property
    def num_names(self) -> int:
        """Blocks that have a name; at most the size of the pool."""
        return len(self._name_of)

    def is_named(self, block_id: int) -> bool:
        """Whether the block may be found by a lookup."""
        return block_id in self._name_of

    def check_invariants(self, requests: Iterable[Request]) -> None:
        """Raise BrokenInvariant unless pool, tables, names and computed tokens agree.

        Call it between steps: during one, named blocks may hold slots that are not yet written.
        """
        requests = list(requests)
        check_pool = getattr(self.pool, "check_invariants", None)
        if check_pool is not None:
            check_pool([request.block_table for request in requests])
        for block_id, name in self._name_of.items():
            if block_id not in name.blocks or name not in self._names.get(name.hash_value, ()):
                raise BrokenInvariant(f"block {block_id} has a name that does not lead back to it")
        names = [name for same_hash in self._names.values() for name in same_hash]
        if sum(len(name.blocks) for name in names) != len(self._name_of):
            raise BrokenInvariant("a name leads to a block that no longer has it (a stale name)")
        if len(self._name_of) > self.pool.num_blocks:
            raise BrokenInvariant(f"{len(self._name_of)} names for {self.pool.num_blocks} blocks")
        for request in requests:
            self._check_table(request)

    def _check_table(self, request: Request) -> None:
        table, who = request.block_table, f"request {request.request_id}"
        if len(set(table)) != len(table):
            raise BrokenInvariant(f"{who} holds a block twice: {table}")
        if self._blocks_for(request.num_computed) > len(table):
            raise BrokenInvariant(
                f"{who} has {request.num_computed} computed tokens in {len(table)} blocks of "
                f"{self.block_size}"
            )
        for index, block_id in enumerate(table):
            name = self._name_of.get(block_id)
            if name is None and self.pool.ref_count(block_id) > 1:
                raise BrokenInvariant(f"block {block_id} is in two tables and has no name")
            if name is not None:
                start = index * self.block_size
                if start + self.block_size > request.num_computed:
                    raise BrokenInvariant(f"block {block_id} of {who} has a name before it is full")
                if list(name.tokens) != request.token_ids[start : start + self.block_size]:
                    raise BrokenInvariant(f"block {block_id} of {who} is named after other tokens")

    def _blocks_for(self, num_tokens: int) -> int:
        return -(-num_tokens // self.block_size)

    def _missing(self, request: Request, num_tokens: int) -> int:
        return self._blocks_for(num_tokens) - len(request.block_table)

    def _name_full_blocks(self, request: Request, num_full: int) -> None:
        first = request.num_named
        name = self._name_of[request.block_table[first - 1]] if first else None
        for index in range(first, num_full):
            name = self._name_for(request, index, parent=name)
            block_id = request.block_table[index]
            name.blocks.append(block_id)
            self._name_of[block_id] = name
            self._young[block_id] = request.request_id
        request.num_named = num_full

    def _name_for(self, request: Request, index: int, parent: BlockName | None) -> BlockName:
        """The one object that names block `index` of the request, made if no block has it."""
        hash_value, salt = self._hash_of(request, index), request.cache_salt
        tokens = self._tokens_of(request, index)
        same_hash = self._names.setdefault(hash_value, [])
        for name in same_hash:
            if name.parent is parent and name.tokens == tokens and name.extra_key == salt:
                return name
        name = BlockName(hash_value, parent, tokens, salt, blocks=[])
        same_hash.append(name)
        return name

    def _hash_of(self, request: Request, index: int) -> int:
        """The hash of block `index`, kept on the request so that it is computed once."""
        hashes = request.block_hashes
        for full in range(len(hashes), index + 1):
            key = (hashes[-1] if hashes else 0, self._tokens_of(request, full), request.cache_salt)
            hashes.append(self._hash(key))
        return hashes[index]

    def _tokens_of(self, request: Request, index: int) -> tuple[int, ...]:
        start = index * self.block_size
        return tuple(request.token_ids[start : start + self.block_size])

    def _still_known(self, request: Request) -> list[BlockName]:
        """What the last lookup found for the same request, up to the first name that died since.

        The head of the queue is looked up in every step in which it has to wait.
        """
        if self._looked_up is not request:
            self._looked_up, self._found = request, []
        for index, name in enumerate(self._found):
            if not name.blocks:
                del self._found[index:]
                break
        return self._found

    def _find_more(self, request: Request, found: list[BlockName], end: int) -> None:
        """Extend the names of the request's first blocks, at most to `end`, while there are any.

        Hashes and compares as `_name_for` does, in one loop: a long cached prompt waits for it.
        """
        token_ids, size, salt = request.token_ids, self.block_size, request.cache_salt
        hashes, hash_function, names = request.block_hashes, self._hash, self._names
        parent, first = (found[-1] if found else None), len(found)
        blocks = zip(*[iter(token_ids[first * size : end * size])] * size, strict=True)
        for index, tokens in enumerate(blocks, first):
            if index == len(hashes):
                hashes.append(hash_function((hashes[-1] if hashes else 0, tokens, salt)))
            for name in names.get(hashes[index], ()):
                if name.parent is parent and name.tokens == tokens and name.extra_key == salt:
                    break
            else:
                return
            found.append(name)
            parent = name

    def _forget(self, block_id: int) -> None:
        name = self._name_of.pop(block_id, None)
        if name is not None:
            name.blocks.remove(block_id)
            if not name.blocks:
                same_hash = self._names[name.hash_value]
                same_hash.remove(name)
                if not same_hash:
                    del self._names[name.hash_value]
