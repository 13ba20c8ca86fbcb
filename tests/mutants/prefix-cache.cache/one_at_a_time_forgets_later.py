# mistake: blocks are taken before OutOfBlocks is raised
"""Into the table one by one; names go when all are there."""

import hashlib


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

    def _missing(self, request, num_tokens):
        return max(0, (num_tokens + self.size - 1) // self.size - len(request.block_table))

    def can_grow(self, request, num_tokens):
        return self.pool.num_free >= self._missing(request, num_tokens)

    def grow(self, request, num_tokens):
        missing = self._missing(request, num_tokens)
        held = len(request.block_table)
        for _ in range(missing):
            request.block_table += self.pool.allocate(1)
        for block in request.block_table[held:]:
            self._drop(block)
        if self.enabled:
            full = request.block_table[: num_tokens // self.size]
            for block, digest in zip(full, self._digests(request), strict=False):
                if block not in self.digest_of:
                    self.digest_of[block] = digest
                    self.table.setdefault(digest, {})[block] = None
                    self.new[block] = request.request_id

    def _drop(self, block):
        digest = self.digest_of.pop(block, None)
        self.new.pop(block, None)
        if digest is not None:
            del self.table[digest][block]
            if not self.table[digest]:
                del self.table[digest]

    def release(self, request):
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
