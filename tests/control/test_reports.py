"""REPORTS 1 to 5, 13, 14, 24, 25, 28 and 29, a test for each; 15 is test_invariants.py.

fuzz.py checks all of them again on random workloads. Outputs come from the shadow model, which
also proves what each step reads.
"""

from __future__ import annotations

from typing import Any

import pytest

from mini_engine.control.block_pool import BlockPool
from mini_engine.control.prefix_cache import PrefixCache
from mini_engine.control.request import Request
from mini_engine.engine import LLMEngine
from mini_engine.shadow import ShadowModel
from tests.control.fuzz import VOCAB, ShadowRunner
from tests.control.workloads import add, run_to_end


def shadow_engine(num_blocks: int, block_size: int, **options: Any) -> LLMEngine:
    """An engine whose steps are proved by the shadow model."""
    runner = ShadowRunner(ShadowModel(block_size, VOCAB))
    runner.engine = LLMEngine(
        runner=runner,
        num_blocks=num_blocks,
        block_size=block_size,
        debug=True,
        **{"max_model_len": 1000, **options},
    )
    return runner.engine


def answer(prompt: list[int], count: int) -> list[int]:
    """What the shadow model says alone."""
    ids, model = list(prompt), ShadowModel(1, VOCAB)
    for _ in range(count):
        ids.append(model.next_token(ids))
    return ids[len(prompt) :]


@pytest.mark.parametrize("length", [4, 8, 12])
def test_report_01_a_prompt_of_full_blocks_sent_twice_gets_the_same_answer(length):
    engine = shadow_engine(20, 4)
    prompt = list(range(length))
    for name in ("first", "second"):
        add(engine, name, prompt, 6)
        assert run_to_end(engine)[name].token_ids == answer(prompt, 6)
    second = next(r for r in engine.trace if "second" in r.new)
    assert second.cached == {"second": length - 4}
    assert second.scheduled == {"second": 4}


def test_report_02_a_reused_block_is_not_found_under_its_old_name():
    engine = shadow_engine(3, 4)
    old, new = list(range(12)), list(range(100, 112))
    for name, prompt in (("old", old), ("new", new), ("old again", old)):
        add(engine, name, prompt)
        run_to_end(engine)
        assert engine.trace[-1].cached == {name: 0}
    assert engine.cache.num_names == 3


def test_report_03_a_request_that_outgrows_the_pool_ends_and_the_next_is_served():
    engine = shadow_engine(3, 4)
    add(engine, "grows", range(7), 50)
    output = run_to_end(engine, most_steps=10)["grows"]
    assert output.finish_reason == "capacity"
    assert output.token_ids == answer(list(range(7)), 6)
    with pytest.raises(ValueError, match="13 tokens and needs 4 blocks, the pool has 3"):
        add(engine, "too long", range(13))
    add(engine, "next", range(50, 60), 2)
    assert run_to_end(engine, most_steps=10)["next"].token_ids == answer(list(range(50, 60)), 2)


def test_report_04_a_resumed_request_counts_from_the_hit_that_survived():
    engine = shadow_engine(5, 2)
    prompt = list(range(10, 17))
    add(engine, "a", range(2), 4)
    add(engine, "b", prompt, 4)
    final = run_to_end(engine)
    preempting = next(r for r in engine.trace if r.preempted)
    assert preempting.preempted == ["b"]
    resumed = next(r for r in engine.trace if r.resumed)
    sampled = sum("b" in r.sampled for r in engine.trace[: resumed.step])
    assert (resumed.cached, resumed.computed["b"]) == ({"b": 4}, 4)
    assert resumed.scheduled["b"] == len(prompt) + sampled - 4
    assert final["b"].token_ids == answer(prompt, 4)


@pytest.mark.parametrize(("length", "blocks"), [(3, [1, 1, 2]), (4, [1, 2, 2]), (5, [2, 2, 2])])
def test_report_05_blocks_at_the_border(length, blocks):
    """Of the prompt, and after one and two decodes: the token about to be sampled has no slot."""
    engine = shadow_engine(10, 4)
    add(engine, "a", range(length), 3)
    run_to_end(engine)
    assert [len(r.block_tables["a"]) for r in engine.trace] == blocks


def test_report_13_no_name_or_request_is_left_after_many():
    engine = shadow_engine(12, 2, max_num_seqs=4, trace_limit=1)
    for number in range(2000):
        add(engine, f"r{number}", [number % 7, number % 3, number % 5, number % 2], 3)
        if number % 4 == 3:
            run_to_end(engine)
    cache = engine.cache
    assert cache.num_names <= 12
    assert sum(map(len, cache._names.values())) <= 12
    assert len(cache._young) <= 12
    assert cache._looked_up is None
    assert not engine.scheduler._requests
    assert not engine.scheduler._aborted_in_step


def test_report_14_an_equal_block_stays_with_its_table():
    """Equal blocks are not merged, so nobody's table changes when a second one gets the name."""
    pool = BlockPool(8)
    cache = PrefixCache(pool, 2)
    one, two = Request("one", [1, 2, 3]), Request("two", [1, 2, 4])
    for request in (one, two):  # both before any name is given
        cache.admit(request, [])
        cache.grow(request, 1)
    tables = [list(one.block_table), list(two.block_table)]
    for request in (one, two):
        cache.grow(request, 2)
    assert [one.block_table, two.block_table] == tables
    assert cache.lookup(Request("three", [1, 2, 5])) == tables[0]
    cache.release(one)
    assert not set(two.block_table) & set(pool.free_block_ids())


def test_report_24_the_cap_counts_what_runs():
    engine = shadow_engine(40, 4, max_num_seqs=2)
    for index in range(5):
        add(engine, f"r{index}", range(10 * index, 10 * index + 3), 4)
        engine.step()
        assert len(engine.scheduler.running) <= 2
    run_to_end(engine)
    assert max(len(r.running) for r in engine.trace) == 2


def test_report_25_a_decode_goes_on_while_prompts_keep_arriving():
    engine = shadow_engine(60, 4, max_num_batched_tokens=8, max_num_seqs=4)
    add(engine, "decode", range(3), 20)
    engine.step()
    for index in range(19):
        add(engine, f"p{index}", range(100 * index, 100 * index + 20))
        engine.step()
    assert all(r.scheduled["decode"] == 1 for r in engine.trace[1:])
    assert engine.trace[-1].finished["decode"] == "length"


def test_report_28_counts_follow_admissions_in_any_order_of_release():
    pool = BlockPool(10)
    cache = PrefixCache(pool, 2)
    requests = [Request(name, [1, 2, 3, 4, number]) for number, name in enumerate("abc")]
    for request in requests:
        cache.begin_step()
        cache.admit(request, cache.lookup(request))
        cache.grow(request, 5)
    first, second = requests[0].block_table[:2]
    for left, request in zip((2, 1, 0), (requests[1], requests[0], requests[2]), strict=True):
        cache.release(request)
        assert [pool.ref_count(first), pool.ref_count(second)] == [left, left]
    assert pool.num_free == 10


def test_report_29_nothing_that_was_handed_out_is_kept():
    pool = BlockPool(10)
    cache = PrefixCache(pool, 2)
    one = Request("one", [1, 2, 3, 4, 5])
    cache.admit(one, [])
    cache.grow(one, 5)
    table = list(one.block_table)
    two = Request("two", [1, 2, 3, 4, 6])
    hit = cache.lookup(two)
    cache.admit(two, hit)
    hit[:] = [9, 9]
    assert two.block_table == table[:2]
    assert cache.lookup(Request("three", [1, 2, 3, 4, 7])) == table[:2]
    again = cache.lookup(two)
    again.clear()
    assert cache.lookup(two) == table[:2]
    one.block_table.append(8)
    assert two.block_table == table[:2]


def test_an_abort_inside_a_step_keeps_the_names_that_others_share():
    engine = shadow_engine(10, 4)
    prompt = list(range(9))
    add(engine, "a", prompt, 5)
    add(engine, "b", prompt, 5)
    engine.runner.abort = ["a"]
    engine.step()
    assert engine.trace[0].scheduled == {"a": 9, "b": 1}
    assert engine.trace[0].running_end == ["b"]
    engine.runner.abort = []
    add(engine, "c", prompt, 5)
    final = run_to_end(engine)
    assert engine.trace[1].cached == {"c": 8}
    assert list(final) == ["b", "c"]
    assert final["b"].token_ids == final["c"].token_ids == answer(prompt, 5)


def test_a_request_admitted_with_the_lookup_of_another_is_named_all_the_same():
    pool = BlockPool(10)
    cache = PrefixCache(pool, 2)
    one, two, three = (Request(name, [1, 2, 3, 4, 5, 6, 7]) for name in ("one", "two", "three"))
    cache.admit(one, [])
    cache.grow(one, 4)
    cache.admit(two, cache.lookup(three))
    cache.grow(two, 6)
    two.num_computed, one.num_computed = 6, 4
    cache.check_invariants([one, two])
    assert cache.lookup(three) == two.block_table
