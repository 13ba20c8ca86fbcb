# mistake: a reused block keeps its old name
"""As with lists, with a dict of blocks under each name."""

import hashlib

from mini_engine.interfaces import OutOfBlocks


class PrefixCache:
    def __init__(self, pool, block_size, *, enabled=True):
        if type(block_size) is not int:
            raise TypeError(f"block_size must be an int, got {block_size!r}")
        if block_size < 1:
            raise ValueError(f"block_size must be 1 or more, got {block_size}")
        self.pool, self.size, self.enabled = pool, block_size, enabled
        self.table, self.digest_of, self.new = {}, {}, {}

    def _digests(self, request):
        kept = request.block_hashes
        while (len(kept) + 1) * self.size <= len(request.token_ids):
            start = len(kept) * self.size
            own = request.token_ids[start : start + self.size]
            content = (kept[-1] if kept else b"", own, request.cache_salt)
            kept.append(hashlib.sha256(repr(content).encode()).digest())
        return kept

    def lookup(self, request):
        hit = []
        if self.enabled:
            for digest in self._digests(request)[: (request.num_tokens - 1) // self.size]:
                if digest not in self.table:
                    break
                hit.append(next(iter(self.table[digest])))
        return hit

    def admit(self, request, hit):
        if request.block_table:
            raise ValueError(f"{request.request_id} holds blocks already")
        for block in hit:
            self.pool.share(block)
            request.block_table.append(block)
        request.num_named = len(hit)

    def _missing(self, request, num_tokens):
        return max(0, (num_tokens + self.size - 1) // self.size - len(request.block_table))

    def can_grow(self, request, num_tokens):
        return self.pool.num_free >= self._missing(request, num_tokens)

    def grow(self, request, num_tokens):
        missing = self._missing(request, num_tokens)
        if missing > self.pool.num_free:
            raise OutOfBlocks(f"{missing} blocks are missing")
        new = self.pool.allocate(missing)
        request.block_table.extend(new)
        if self.enabled:
            digests, upto = self._digests(request), num_tokens // self.size
            for i in range(request.num_named, upto):
                block = request.block_table[i]
                self.digest_of[block] = digests[i]
                self.table.setdefault(digests[i], {})[block] = None
                self.new[block] = request.request_id
            request.num_named = max(request.num_named, upto)

    def _drop(self, block):
        digest = self.digest_of.pop(block, None)
        self.new.pop(block, None)
        if digest is not None:
            del self.table[digest][block]
            if not self.table[digest]:
                del self.table[digest]

    def release(self, request):
        request.num_named = 0
        while request.block_table:
            block = request.block_table.pop()
            self.pool.free(block, to_front=block not in self.digest_of)

    def begin_step(self):
        self.new = {}

    def take_back_names(self, request=None):
        for block, owner in list(self.new.items()):
            if request is None or owner == request.request_id:
                self._drop(block)

    def is_named(self, block_id):
        return block_id in self.digest_of

    def reset(self):
        if self.pool.num_free != self.pool.num_blocks:
            return False
        self.table, self.digest_of, self.new = {}, {}, {}
        return True
