"""A radix tree: an edge holds many blocks' tokens, and is split where two prompts part."""

from mini_engine.config import require_int


class Edge:
    def __init__(self, parent, pieces):
        self.parent, self.pieces, self.children = parent, pieces, {}
        self.blocks = [[] for _ in pieces]  # that hold each piece, oldest first


class PrefixCache:
    def __init__(self, pool, block_size, *, enabled=True):
        require_int("PrefixCache", "block_size", block_size, 1)
        self.pool, self.block_size, self.enabled = pool, block_size, enabled
        self.roots, self.place_of, self.young = {}, {}, {}

    def _pieces(self, request, count):
        size, ids = self.block_size, request.token_ids
        return [tuple(ids[i * size : (i + 1) * size]) for i in range(count)]

    def _walk(self, request, count, *, create):
        """The (edge, index) of each piece, as far as the tree goes; with `create` of all."""
        pieces, salt, places = self._pieces(request, count), request.cache_salt, []
        edge = self.roots.get(salt) or Edge(None, [])
        if create:
            self.roots[salt] = edge
        while len(places) < count:
            below = edge.children.get(pieces[len(places)])
            if below is None and create:
                below = edge.children[pieces[len(places)]] = Edge(edge, pieces[len(places) :])
            if below is None:
                return places
            same = 0
            while same < len(below.pieces) and len(places) < count:
                if below.pieces[same] != pieces[len(places)]:
                    break
                places.append((below, same))
                same += 1
            if same < len(below.pieces) and len(places) < count:
                if not create:
                    return places
                self._split(below, same)
            edge = below
        return places

    def _split(self, edge, at):
        """The pieces from `at` on move to an edge of their own below this one."""
        tail = Edge(edge, edge.pieces[at:])
        tail.blocks, tail.children = edge.blocks[at:], edge.children
        for child in tail.children.values():
            child.parent = tail
        edge.pieces, edge.blocks = edge.pieces[:at], edge.blocks[:at]
        edge.children = {tail.pieces[0]: tail}
        for index, blocks in enumerate(tail.blocks):
            for block in blocks:
                self.place_of[block] = (tail, index)

    def lookup(self, request):
        hit = []
        if self.enabled:
            most = (request.num_tokens - 1) // self.block_size
            for edge, index in self._walk(request, most, create=False):
                if not edge.blocks[index]:
                    break
                hit.append(edge.blocks[index][0])
        return hit

    def admit(self, request, hit):
        if request.block_table:
            raise ValueError("the request holds blocks")
        for block in hit:
            self.pool.share(block)
        request.block_table += hit

    def _short_of(self, request, num_tokens):
        return max(0, -(-num_tokens // self.block_size) - len(request.block_table))

    def can_grow(self, request, num_tokens):
        return self._short_of(request, num_tokens) <= self.pool.num_free

    def grow(self, request, num_tokens):
        new = self.pool.allocate(self._short_of(request, num_tokens))
        for block in new:
            self._unname(block)
        request.block_table += new
        if self.enabled:
            for index in range(num_tokens // self.block_size):
                block = request.block_table[index]
                if block not in self.place_of:
                    edge, place = self._walk(request, index + 1, create=True)[-1]
                    edge.blocks[place].append(block)
                    self.place_of[block] = (edge, place)
                    self.young[block] = request.request_id

    def _unname(self, block):
        edge, index = self.place_of.pop(block, (None, 0))
        if edge is not None:
            edge.blocks[index].remove(block)
        while edge is not None and not any(edge.blocks) and not edge.children:
            above, key = edge.parent, edge.pieces[:1]
            if above is not None:
                del above.children[key[0]]
            edge = above
        self.roots = {salt: root for salt, root in self.roots.items() if root.children}

    def release(self, request):
        for block in reversed(request.block_table):
            self.pool.free(block, to_front=block not in self.place_of)
        request.block_table = []

    def begin_step(self):
        self.young = {}

    def take_back_names(self, request=None):
        for block, owner in list(self.young.items()):
            if request is None or owner == request.request_id:
                del self.young[block]
                self._unname(block)

    def is_named(self, block_id):
        return block_id in self.place_of

    def reset(self):
        if self.pool.num_free < self.pool.num_blocks:
            return False
        self.roots, self.place_of, self.young = {}, {}, {}
        return True
