"""Owns the proof of the radix cache: splits, locks, leaf LRU, exchanged blocks, any block size.

test_state_machines.py drives it at random; here are its rules one by one, and the workloads of
fuzz.py, whose shadow KV proves that no step reads foreign tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from mini_engine.control.block_pool import BlockPool
from mini_engine.control.radix_cache import RadixCache
from mini_engine.control.radix_tree import Node, RadixTree
from mini_engine.control.request import Request
from mini_engine.engine import LLMEngine
from mini_engine.interfaces import BrokenInvariant, OutOfBlocks
from mini_engine.parts import EngineParts
from tests.control.fuzz import Run, make_workload
from tests.control.workloads import add, control_engine, free, run_to_end, scheduled

RADIX = EngineParts(prefix_cache="mini_engine.control.radix_cache:RadixCache")


def make_engine(num_blocks: int, block_size: int, **options: Any) -> LLMEngine:
    return control_engine(num_blocks, block_size, parts=RADIX, **options)


class Cache:
    """A radix cache on its own; requests are computed as soon as they are admitted."""

    def __init__(self, num_blocks: int, block_size: int) -> None:
        self.pool = BlockPool(num_blocks)
        self.cache = RadixCache(self.pool, block_size)
        self.alive: list[Request] = []

    def serve(self, tokens: list[int], salt: str | None = None, keep: bool = False) -> int:
        """Admit and compute these tokens, release them unless `keep`; returns the hit in tokens."""
        request = Request(f"r{id(tokens)}-{self.pool.num_free}-{len(self.alive)}", tokens)
        request.cache_salt = salt
        hit = self.cache.lookup(request)
        self.cache.begin_step()
        self.cache.admit(request, hit)
        self.cache.grow(request, len(tokens))
        request.num_computed = len(tokens)
        self.alive.append(request)
        if not keep:
            self.done()
        self.cache.check_invariants(self.alive)
        return len(hit) * self.cache.block_size

    def done(self) -> None:
        """Release the last request."""
        self.cache.release(self.alive.pop())

    def hit(self, tokens: list[int], salt: str | None = None) -> int:
        """What a request of these tokens, and one more, would hit; moves nothing."""
        request = Request("probe", [*tokens, -1], cache_salt=salt)
        return len(self.cache.lookup(request)) * self.cache.block_size


def shape(node: Node) -> Any:
    """The tree below a node: {its tokens: children}."""
    return {
        tuple(token for tokens in child.run for token in tokens): shape(child)
        for child in node.children.values()
    }


@pytest.mark.parametrize("part", range(2))
def test_no_step_reads_kv_that_is_not_its_own(part: int) -> None:
    seen: Counter[str] = Counter()
    for number in range(100 * part, 100 * part + 100):
        seen += Run(make_workload(9, number), RADIX).to_end()
    for kind in ("hit", "preempted", "failed", "aborted inside a step", "capacity", "refused"):
        assert seen[kind] > 0, f"these workloads have nothing that is {kind}"


def test_prompts_that_part_share_a_node_and_an_admission_splits_it() -> None:
    box = Cache(20, 2)
    box.serve([1, 2, 3, 4, 5, 6])
    assert shape(box.cache.tree.roots[None]) == {(1, 2, 3, 4, 5, 6): {}}
    assert box.hit([1, 2, 3, 4, 9, 9]) == 4
    assert shape(box.cache.tree.roots[None]) == {(1, 2, 3, 4, 5, 6): {}}  # a lookup splits nothing
    assert box.serve([1, 2, 3, 4, 9, 9]) == 4
    assert shape(box.cache.tree.roots[None]) == {(1, 2, 3, 4): {(5, 6): {}, (9, 9): {}}}


def test_a_hit_ends_at_any_token_with_blocks_of_one() -> None:
    box = Cache(20, 1)
    box.serve([1, 2, 3, 4, 5])
    assert [box.hit([1, 2, 3, 4, 5][:n]) for n in range(6)] == [0, 1, 2, 3, 4, 5]
    assert box.hit([1, 2, 9]) == 2
    assert box.serve([1, 2, 3, 4, 5]) == 4  # at least one token is always computed


def test_a_prompt_that_is_served_again_keeps_one_block_for_the_same_tokens() -> None:
    """It computes its last block again, and exchanges it for the tree's when it is written."""
    engine = make_engine(20, 4)
    for name in ("a", "b"):
        add(engine, name, range(8), 6)
        run_to_end(engine)
    assert engine.trace[-1].free_blocks_end == 20
    assert [record.cached for record in engine.trace if record.cached] == [{"a": 0}, {"b": 4}]
    of_a = engine.trace[0].block_tables["a"]
    before, after = (engine.trace[step].block_tables["b"] for step in (6, 7))
    assert before[0] == after[0] == of_a[0]
    assert before[1] != after[1] == of_a[1]
    add(engine, "c", [*range(8), *range(900_000, 900_006)], 1)
    engine.step()
    assert engine.trace[-1].cached == {"c": 12}  # b's outputs are found, behind a's blocks


def test_the_leaf_that_was_not_used_for_longest_goes_first_and_from_its_end() -> None:
    box = Cache(6, 1)
    for tokens in ([1, 2, 3], [1, 2, 4], [7, 8]):
        box.serve(tokens)
    assert box.pool.num_free == 6
    assert box.cache.num_names == 6  # 1 2 3, 4, 7 8
    assert box.serve([1, 2, 3, 5], keep=True) == 3  # 3 is used again, so 4 is the oldest leaf
    assert (box.hit([1, 2, 4]), box.hit([7, 8])) == (2, 2)
    box.serve([9], keep=True)
    assert box.hit([7, 8]) == 1


def test_a_locked_path_is_never_evicted_and_the_pool_says_so() -> None:
    box = Cache(4, 1)
    box.serve([1, 2, 3], keep=True)
    probe = Request("x", [8, 9])
    box.cache.admit(probe, [])
    assert not box.cache.can_grow(probe, 2)
    with pytest.raises(OutOfBlocks):
        box.cache.grow(probe, 2)
    assert box.hit([1, 2, 3]) == 3
    box.done()
    assert box.cache.can_grow(probe, 2)
    box.cache.grow(probe, 2)
    assert box.hit([1, 2, 3]) == 2


def test_salts_have_trees_of_their_own_and_empty_ones_go() -> None:
    box = Cache(4, 1)
    for number in range(50):
        assert box.serve([1, 2, 3], salt=f"customer {number}") == 0
    assert box.serve([1, 2, 3], salt="customer 49") == 2
    assert box.hit([1, 2, 3]) == 0
    assert len(box.cache.tree.roots) <= 5


def test_names_of_a_failed_step_are_taken_out_again() -> None:
    box = Cache(10, 2)
    box.serve([1, 2, 3, 4], keep=True)
    request = box.alive[0]
    request.append_output(5)
    request.append_output(6)
    box.cache.begin_step()
    box.cache.grow(request, 6)
    assert box.hit([1, 2, 3, 4, 5, 6]) == 6
    box.cache.take_back_names()
    assert box.hit([1, 2, 3, 4, 5, 6]) == 4
    box.done()
    box.cache.check_invariants([])
    assert box.cache.num_names == 2


def test_two_prompts_of_one_step_share_as_with_names() -> None:
    """SEMANTICS 14."""
    engine = make_engine(8, 4)
    for name in ("a", "b"):
        add(engine, name, range(9), 2)
    engine.step()
    assert (scheduled(engine), free(engine)) == ([[9, 1]], 4)


def test_several_turns_hit_what_was_computed() -> None:
    """SEMANTICS 12, and with blocks of 1 all but the last token of the turn before."""
    for block_size, hit in ((16, 32), (1, 32)):
        engine = make_engine(100, block_size)
        add(engine, "first", range(20), 13)
        output = run_to_end(engine)["first"]
        add(engine, "second", [*range(20), *output.token_ids, *range(50, 57)], 1)
        engine.step()
        assert engine.trace[-1].cached == {"second": hit}


def test_reset_and_a_cache_that_is_off() -> None:
    box = Cache(8, 1)
    box.serve([1, 2, 3], keep=True)
    assert not box.cache.reset()
    box.done()
    assert box.cache.reset()
    assert (box.cache.num_names, box.hit([1, 2, 3])) == (0, 0)
    off = make_engine(4, 4, enable_prefix_caching=False)
    for name, length in (("a", 10), ("b", 16)):
        add(off, name, range(length))
        run_to_end(off)
    assert [record.cached for record in off.trace] == [{"a": 0}, {"b": 0}]


def forget_a_lock(cache: RadixCache) -> None:
    next(iter(cache.tree.node_of.values())).locks = 0


def count_too_many_idle(cache: RadixCache) -> None:
    cache.tree.num_idle += 1


def lead_astray(cache: RadixCache) -> None:
    (first, second) = list(cache.tree.node_of)[:2]
    cache.tree.node_of[first] = Node(None)
    assert second


def rename(cache: RadixCache) -> None:
    node = next(iter(cache.tree.node_of.values()))
    node.run[-1] = (77, 78)


def cut_off(cache: RadixCache) -> None:
    cache.tree.roots.clear()


def hide(cache: RadixCache) -> None:
    next(iter(cache.tree.roots.values())).children.clear()


def put_an_idle_block_in_front(cache: RadixCache) -> None:
    idle = next(b for b in cache.pool.free_block_ids() if cache.is_named(b))
    cache.pool.share(idle)
    cache.pool.free(idle)


@pytest.mark.parametrize(
    ("corrupt", "complaint"),
    [
        (forget_a_lock, "is held 1 times, its node has 0 locks"),
        (count_too_many_idle, "4 blocks of the tree are idle"),
        (lead_astray, "leads to a node that does not hold it"),
        (rename, "is named after other tokens"),
        (cut_off, "is in a branch that was cut off"),
        (hide, "is not found from its parent"),
        (put_an_idle_block_in_front, "the free list, 1 for those in the tree, is"),
    ],
)
def test_each_broken_rule_is_found(corrupt: Callable[[RadixCache], None], complaint: str) -> None:
    box = Cache(12, 2)
    box.serve([1, 2, 3, 4], keep=True)
    other = Request("gone", [5, 6, 7, 8, 9, 10])
    box.cache.admit(other, [])
    box.cache.grow(other, 6)
    other.num_computed = 6
    box.cache.release(other)
    box.cache.check_invariants(box.alive)
    corrupt(box.cache)
    with pytest.raises(BrokenInvariant, match=complaint):
        box.cache.check_invariants(box.alive)


def test_a_tree_gives_up_no_more_than_is_idle() -> None:
    tree = RadixTree()
    end = tree.add(tree.root(None), (1,), 0)
    assert end is not None
    with pytest.raises(IndexError):
        tree.evict(1)
    tree.unlock([end])
    assert tree.evict(1) == [0]
    assert tree.num_idle == 0
