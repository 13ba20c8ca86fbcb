"""A tree of dicts: a node for each name, its children by their tokens, a root for each salt."""

from mini_engine.config import require_int


class Node:
    def __init__(self, parent, key):
        self.parent, self.key = parent, key
        self.children, self.blocks = {}, []

    def prune(self):
        node = self
        while node.parent is not None and not node.blocks and not node.children:
            del node.parent.children[node.key]
            node = node.parent


class PrefixCache:
    def __init__(self, pool, block_size, *, enabled=True):
        require_int("PrefixCache", "block_size", block_size, 1)
        self.pool, self.block_size, self.enabled = pool, block_size, enabled
        self.root, self.node_of, self.young = Node(None, None), {}, set()

    def _keys(self, request, count):
        """The way from the root: the salt, then the tokens of each block."""
        size, ids = self.block_size, request.token_ids
        yield ("salt", request.cache_salt)
        for i in range(count):
            yield tuple(ids[i * size : (i + 1) * size])

    def lookup(self, request):
        if not self.enabled:
            return []
        hit, node = [], self.root
        for key in self._keys(request, (request.num_tokens - 1) // self.block_size):
            node = node.children.get(key)
            if node is None or (type(key[0]) is not str and not node.blocks):
                break
            if type(key[0]) is not str:
                hit.append(node.blocks[0])
        return hit

    def admit(self, request, hit):
        if len(request.block_table) > 0:
            raise ValueError("release the request first")
        for block in hit:
            self.pool.share(block)
        request.block_table = [*hit]

    def can_grow(self, request, num_tokens):
        return len(request.block_table) + self.pool.num_free >= -(-num_tokens // self.block_size)

    def grow(self, request, num_tokens):
        wanted = -(-num_tokens // self.block_size) - len(request.block_table)
        if wanted > 0:
            new = self.pool.allocate(wanted)
            for block in new:
                self._unname(block)
            request.block_table += new
        if not self.enabled:
            return
        node = self.root
        for i, key in enumerate(self._keys(request, num_tokens // self.block_size)):
            if key not in node.children:
                node.children[key] = Node(node, key)
            node = node.children[key]
            if i and (block := request.block_table[i - 1]) not in self.node_of:
                node.blocks.append(block)
                self.node_of[block] = node
                self.young.add((request.request_id, block))
        node.prune()

    def _unname(self, block):
        node = self.node_of.pop(block, None)
        if node is not None:
            node.blocks.remove(block)
            node.prune()

    def release(self, request):
        table, request.block_table = request.block_table, []
        for block in reversed(table):
            self.pool.free(block, to_front=not self.is_named(block))

    def begin_step(self):
        self.young.clear()

    def take_back_names(self, request=None):
        for owner, block in sorted(self.young):
            if request is None or request.request_id == owner:
                self.young.discard((owner, block))
                self._unname(block)

    def is_named(self, block_id):
        return block_id in self.node_of

    def reset(self):
        idle = self.pool.num_free == self.pool.num_blocks
        if idle:
            self.root, self.node_of = Node(None, None), {}
            self.young.clear()
        return idle
