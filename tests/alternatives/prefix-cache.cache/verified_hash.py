"""A weak hash finds candidates; a hit compares tokens, salt and the entry before."""

from dataclasses import dataclass, field

from mini_engine.config import require_int


@dataclass(eq=False)
class Entry:
    before: object
    tokens: tuple
    salt: object
    blocks: list = field(default_factory=list)


class PrefixCache:
    def __init__(self, pool, block_size, *, enabled=True):
        require_int("cache", "block_size", block_size, 1)
        self.pool, self.block_size, self.enabled = pool, block_size, enabled
        self.buckets, self.entry_of, self.young = {}, {}, {}

    def _weak(self, tokens, salt):
        return (sum(tokens) + len(salt or "")) % 17

    def _find(self, before, tokens, salt):
        for entry in self.buckets.get(self._weak(tokens, salt), ()):
            if entry.before is before and entry.tokens == tokens and entry.salt == salt:
                return entry
        return None

    def _own(self, request, index):
        start = index * self.block_size
        return tuple(request.token_ids[start : start + self.block_size])

    def lookup(self, request):
        hit, entry = [], None
        for index in range((request.num_tokens - 1) // self.block_size if self.enabled else 0):
            entry = self._find(entry, self._own(request, index), request.cache_salt)
            if entry is None or not entry.blocks:
                break
            hit.append(entry.blocks[0])
        return hit

    def admit(self, request, hit):
        if request.block_table:
            raise ValueError("not empty")
        request.block_table = hit[:]
        for block in hit:
            self.pool.share(block)

    def _more(self, request, num_tokens):
        return max(0, -(-num_tokens // self.block_size) - len(request.block_table))

    def can_grow(self, request, num_tokens):
        return self._more(request, num_tokens) <= self.pool.num_free

    def grow(self, request, num_tokens):
        new = self.pool.allocate(self._more(request, num_tokens))
        for block in new:
            self._forget(block)
        request.block_table.extend(new)
        if not self.enabled:
            return
        entry = None
        for index, block in enumerate(request.block_table[: num_tokens // self.block_size]):
            tokens = self._own(request, index)
            before, entry = entry, self.entry_of.get(block)
            if entry is None:
                entry = self._find(before, tokens, request.cache_salt)
                if entry is None:
                    entry = Entry(before, tokens, request.cache_salt)
                    weak = self._weak(tokens, request.cache_salt)
                    self.buckets.setdefault(weak, []).append(entry)
                entry.blocks.append(block)
                self.entry_of[block] = entry
                self.young.setdefault(request.request_id, []).append(block)

    def _forget(self, block):
        entry = self.entry_of.pop(block, None)
        if entry is not None:
            entry.blocks.remove(block)
            if not entry.blocks:
                self.buckets[self._weak(entry.tokens, entry.salt)].remove(entry)

    def release(self, request):
        for block in reversed(request.block_table):
            self.pool.free(block, to_front=block not in self.entry_of)
        request.block_table = []

    def begin_step(self):
        self.young = {}

    def take_back_names(self, request=None):
        owners = list(self.young) if request is None else [request.request_id]
        for owner in owners:
            for block in self.young.pop(owner, ()):
                self._forget(block)

    def is_named(self, block_id):
        return block_id in self.entry_of

    def reset(self):
        if self.pool.num_free < self.pool.num_blocks:
            return False
        self.buckets, self.entry_of, self.young = {}, {}, {}
        return True
