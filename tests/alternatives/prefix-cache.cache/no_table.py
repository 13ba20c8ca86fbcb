"""No table of names: every block remembers its whole prefix, and a lookup goes over the blocks."""

from mini_engine.config import require_int


class PrefixCache:
    def __init__(self, pool, block_size, *, enabled=True):
        require_int("cache", "block_size", block_size, 1)
        self.pool = pool
        self.block_size = block_size
        self.enabled = enabled
        self.content = {}  # block -> (salt, all tokens up to its end); oldest name first
        self.given = []

    def lookup(self, request):
        hit, size = [], self.block_size
        while (len(hit) + 1) * size < request.num_tokens:
            wanted = (request.cache_salt, request.token_ids[: (len(hit) + 1) * size])
            for block, content in self.content.items():
                if content == wanted:
                    hit.append(block)
                    break
            else:
                break
        return hit

    def admit(self, request, hit):
        if request.block_table != []:
            raise ValueError(request.request_id)
        for block in hit:
            self.pool.share(block)
        request.block_table.extend(hit)

    def _wanted(self, request, num_tokens):
        wanted, rest = divmod(num_tokens, self.block_size)
        return max(0, wanted + (rest > 0) - len(request.block_table))

    def can_grow(self, request, num_tokens):
        return self._wanted(request, num_tokens) <= self.pool.num_free

    def grow(self, request, num_tokens):
        for block in self.pool.allocate(self._wanted(request, num_tokens)):
            self.content.pop(block, None)
            request.block_table.append(block)
        if self.enabled:
            for index in range(num_tokens // self.block_size):
                block = request.block_table[index]
                if block not in self.content:
                    prefix = request.token_ids[: (index + 1) * self.block_size]
                    self.content[block] = (request.cache_salt, prefix)
                    self.given.append((request.request_id, block))

    def release(self, request):
        for block in request.block_table[::-1]:
            self.pool.free(block, to_front=block not in self.content)
        del request.block_table[:]

    def begin_step(self):
        self.given = []

    def take_back_names(self, request=None):
        rest = []
        for owner, block in self.given:
            if request is not None and owner != request.request_id:
                rest.append((owner, block))
            else:
                self.content.pop(block, None)
        self.given = rest

    def is_named(self, block_id):
        return block_id in self.content

    def reset(self):
        if self.pool.num_free < self.pool.num_blocks:
            return False
        self.content.clear()
        self.given = []
        return True
