"""Owns the radix tree: runs of full blocks on its edges, and what of it may be evicted.

A node holds a run of blocks whose tokens follow those of its parent. Compare SGLang's `TreeNode` in
`sglang/srt/mem_cache/radix_cache.py`, whose runs are of tokens or pages.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count

Tokens = tuple[int, ...]


@dataclass(eq=False, slots=True)
class Node:
    """A run of full blocks: block `blocks[i]` holds the tokens `run[i]`.

    Children are found by the tokens of their first block. `locks` counts the requests that hold the
    run; each of them holds all of it, so it is the reference count of every block in it. A parent
    has at least as many locks as its children together. `used` grows with every use.
    """

    parent: Node | None
    run: list[Tokens] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    children: dict[Tokens, Node] = field(default_factory=dict)
    locks: int = 0
    used: int = 0

    def path(self) -> list[Node]:
        """The nodes from this one up to the root, whose run is empty."""
        nodes, node = [], self
        while node.parent is not None:
            nodes.append(node)
            node = node.parent
        return [*nodes, node]


class RadixTree:
    """The trees of all extra keys; `node_of` leads from a block to its node.

    `num_idle` counts the blocks that nobody holds: `evict` can give exactly so many back.
    """

    def __init__(self) -> None:
        self.roots: dict[str | None, Node] = {}
        self.node_of: dict[int, Node] = {}
        self.num_idle = 0
        self._clock = count(1)

    def root(self, extra_key: str | None) -> Node:
        """The root for an extra key, made if there is none; roots that hold nothing go then."""
        if extra_key not in self.roots:
            self.roots = {k: root for k, root in self.roots.items() if root.children or root.locks}
            self.roots[extra_key] = Node(None)
        return self.roots[extra_key]

    def match(self, node: Node | None, run: Iterator[Tokens]) -> list[tuple[Node, int]]:
        """Below `node`: (node, how many of its blocks) along the longest known start of `run`."""
        found = []
        tokens = next(run, None)
        while node is not None and tokens in node.children:
            node, same = node.children[tokens], 0
            while same < len(node.run) and tokens == node.run[same]:
                same += 1
                tokens = next(run, None)
            found.append((node, same))
            if same < len(node.run):
                break
        return found

    def split(self, node: Node, length: int) -> Node:
        """Cut a node's run behind `length` blocks; returns the upper half, a new node.

        The lower half stays the same object, so whoever is attached to its end stays there. With
        nothing behind it, the node stays whole and is returned.
        """
        parent = node.parent
        if parent is None or length == len(node.run):
            return node
        upper = Node(parent, node.run[:length], node.blocks[:length])
        upper.locks, upper.used = node.locks, node.used
        parent.children[upper.run[0]] = upper
        node.parent, node.run, node.blocks = upper, node.run[length:], node.blocks[length:]
        upper.children[node.run[0]] = node
        for block_id in upper.blocks:
            self.node_of[block_id] = upper
        return upper

    def add(self, end: Node, tokens: Tokens, block_id: int) -> Node | None:
        """Add a block that its one holder, attached to `end`, has filled; returns its new end.

        None if the tree has these tokens there already, in another block.
        """
        if tokens in end.children:
            return None
        if (
            end.parent is None or end.children or end.locks > 1
        ):  # others end here: a node of its own
            end.children[tokens] = end = Node(end, locks=1)
        end.run.append(tokens)
        end.blocks.append(block_id)
        self.node_of[block_id] = end
        self._touch(end)
        return end

    def lock(self, nodes: Iterable[Node]) -> None:
        """One request more holds these nodes."""
        for node in nodes:
            self.num_idle -= 0 if node.locks else len(node.blocks)
            node.locks += 1
            self._touch(node)

    def unlock(self, nodes: Iterable[Node]) -> None:
        """One request less holds these nodes."""
        for node in nodes:
            node.locks -= 1
            self.num_idle += 0 if node.locks else len(node.blocks)
            self._touch(node)

    def _touch(self, node: Node) -> None:
        node.used = next(self._clock)

    def cut(self, node: Node) -> int:
        """Take the last block out of a leaf; an empty leaf leaves the tree. Returns the block."""
        assert not node.children
        tokens, block_id = node.run.pop(), node.blocks.pop()
        del self.node_of[block_id]
        self.num_idle -= 0 if node.locks else 1
        if not node.blocks:
            assert node.parent is not None
            del node.parent.children[tokens]
        return block_id

    def evict(self, number: int) -> list[int]:
        """Take `number` idle blocks out: of the leaf that was not used for longest, from its end.

        A leaf, because whoever needs a block needs all those before it. Raises IndexError if fewer
        are idle.
        """
        leaves = [_entry(node) for node in set(self.node_of.values()) if _evictable(node)]
        heapq.heapify(leaves)
        evicted: list[int] = []
        while len(evicted) < number:
            node = heapq.heappop(leaves)[2]
            parent = node.parent
            while node.blocks and len(evicted) < number:
                evicted.append(self.cut(node))
            if parent is not None and _evictable(parent):
                heapq.heappush(leaves, _entry(parent))
        return evicted


def _entry(node: Node) -> tuple[int, int, Node]:
    return node.used, node.blocks[0], node


def _evictable(node: Node) -> bool:
    return not node.children and not node.locks and node.parent is not None
