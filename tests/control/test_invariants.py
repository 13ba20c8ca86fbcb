"""REPORTS 15: an integrity check that never fails is empty; each hand-made corruption is named."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mini_engine.control.request import Request
from mini_engine.engine import LLMEngine
from mini_engine.interfaces import BrokenInvariant
from tests.control.workloads import add, control_engine


def lose_a_free_block(engine: LLMEngine) -> None:
    engine.cache.pool._free.popitem()


def free_a_held_block(engine: LLMEngine) -> None:
    engine.cache.pool._free[engine.scheduler.running[0].block_table[0]] = None


def count_one_holder_too_many(engine: LLMEngine) -> None:
    engine.cache.pool._ref_counts[engine.scheduler.running[0].block_table[0]] += 1


def keep_a_freed_block_in_a_table(engine: LLMEngine) -> None:
    engine.scheduler.running[0].block_table.append(engine.cache.pool.free_block_ids()[0])


def list_a_block_twice(engine: LLMEngine) -> None:
    table = engine.scheduler.running[0].block_table
    table.append(table[0])
    engine.cache.pool._ref_counts[table[0]] += 1


def share_an_unnamed_block(engine: LLMEngine) -> None:
    first, second = engine.scheduler.running
    engine.cache.pool.share(first.block_table[-1])
    second.block_table.append(first.block_table[-1])


def put_a_stranger_into_the_free_list(engine: LLMEngine) -> None:
    engine.cache.pool._free[99] = None


def forget_a_name_halfway(engine: LLMEngine) -> None:
    cache = engine.cache
    name = cache._name_of[engine.scheduler.running[0].block_table[0]]
    del cache._names[name.hash_value]


def keep_a_stale_name(engine: LLMEngine) -> None:
    cache = engine.cache
    name = cache._name_of[engine.scheduler.running[0].block_table[0]]
    name.blocks.append(engine.cache.pool.free_block_ids()[0])


def name_a_block_before_it_is_full(engine: LLMEngine) -> None:
    engine.scheduler.running[0].num_computed = 3


def name_a_block_after_other_tokens(engine: LLMEngine) -> None:
    engine.scheduler.running[0].token_ids[0] = 77


def compute_without_blocks(engine: LLMEngine) -> None:
    engine.scheduler.running[0].num_computed = 400


def wait_with_blocks(engine: LLMEngine) -> None:
    waiting = engine.scheduler.waiting[0]
    waiting.block_table.extend(engine.cache.pool.allocate(1))


def be_in_both_queues(engine: LLMEngine) -> None:
    engine.scheduler.waiting.push(engine.scheduler.running[0])


def be_in_no_queue(engine: LLMEngine) -> None:
    engine.scheduler._requests["ghost"] = Request("ghost", [1])


def run_more_than_allowed(engine: LLMEngine) -> None:
    ghost = Request("ghost", [1])
    engine.scheduler._requests["ghost"] = ghost
    engine.scheduler.running.append(ghost)


CORRUPTIONS: dict[Callable[[LLMEngine], None], str] = {
    lose_a_free_block: "is not in the free list",
    free_a_held_block: "and is in the free list",
    count_one_holder_too_many: "has reference count 2, 1 tables hold it",
    keep_a_freed_block_in_a_table: "has reference count 0, 1 tables hold it",
    list_a_block_twice: "holds a block twice",
    share_an_unnamed_block: "is in two tables and has no name",
    put_a_stranger_into_the_free_list: r"outside the pool: \[99\]",
    forget_a_name_halfway: "does not lead back",
    keep_a_stale_name: "stale name",
    name_a_block_before_it_is_full: "before it is full",
    name_a_block_after_other_tokens: "named after other tokens",
    compute_without_blocks: "400 computed tokens in 3 blocks of 4",
    wait_with_blocks: "waits and still holds KV",
    be_in_both_queues: "both queues",
    be_in_no_queue: "both queues, in none",
    run_more_than_allowed: "3 run, at most 2 may",
}


@pytest.mark.parametrize("corrupt", list(CORRUPTIONS), ids=lambda function: function.__name__)
def test_a_corruption_is_named(corrupt: Callable[[LLMEngine], None]) -> None:
    engine = control_engine(20, 4, max_num_seqs=2)
    for index in range(3):
        add(engine, f"r{index}", range(100 * index, 100 * index + 10), 9)
    engine.step()
    engine.scheduler.check_invariants()
    corrupt(engine)
    with pytest.raises(BrokenInvariant, match=CORRUPTIONS[corrupt]):
        engine.scheduler.check_invariants()
