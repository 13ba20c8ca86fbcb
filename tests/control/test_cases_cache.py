"""SEMANTICS 1 to 15: the block pool and the prefix cache, as engine steps where possible."""

from __future__ import annotations

import random

import pytest

from mini_engine.control.block_pool import BlockPool
from mini_engine.control.prefix_cache import PrefixCache
from mini_engine.control.request import Request
from tests.control.workloads import add, control_engine, free, run_to_end, scheduled


def last(engine):
    return engine.trace[-1]


def test_case_01_blocks_hold_computed_tokens_rounded_up():
    engine = control_engine(20, 16)
    for name, length in (("a", 55), ("b", 59), ("c", 78)):
        add(engine, name, range(length), 2)
    engine.step()
    assert [len(t) for t in last(engine).block_tables.values()] == [4, 4, 5]


def test_case_02_the_last_sampled_token_takes_no_block():
    engine = control_engine(2, 4)
    add(engine, "a", range(5), 4)
    run_to_end(engine)
    assert scheduled(engine) == [[5], [1], [1], [1]]
    assert not any(record.preempted for record in engine.trace)
    assert free(engine) == 2


def test_case_03_shared_blocks_are_counted_twice_and_survive_aborts():
    common = list(range(48))
    engine = control_engine(10, 16)
    add(engine, "a", common + list(range(100, 107)), 9)
    engine.step()
    assert (scheduled(engine)[-1], free(engine)) == ([55], 6)
    add(engine, "b", common + list(range(200, 205)), 9)
    engine.step()
    assert last(engine).cached == {"b": 48}
    assert last(engine).scheduled == {"a": 1, "b": 5}
    assert free(engine) == 5
    tables = last(engine).block_tables
    shared = tables["a"][:3]
    assert tables["b"][:3] == shared
    assert [engine.cache.pool.ref_count(b) for b in shared] == [2, 2, 2]
    engine.abort("a")
    engine.abort("b")
    assert free(engine) == 10
    add(engine, "c", common + list(range(300, 306)), 9)
    engine.step()
    assert last(engine).cached == {"c": 48}
    assert free(engine) == 6


@pytest.mark.parametrize(("length", "hit", "rest"), [(32, 16, 16), (33, 32, 1)])
def test_case_04_the_last_token_is_always_computed(length, hit, rest):
    engine = control_engine(10, 16)
    add(engine, "a", range(length))
    run_to_end(engine)
    add(engine, "b", range(length))
    run_to_end(engine)
    assert last(engine).cached == {"b": hit}
    assert last(engine).scheduled == {"b": rest}


def test_case_05_a_hit_ends_at_the_first_block_that_differs():
    engine = control_engine(40, 4)
    add(engine, "a", range(12))
    run_to_end(engine)
    add(engine, "b", [*range(10), 99, 98])
    run_to_end(engine)
    assert last(engine).cached == {"b": 8}
    for changed, hit in ((5, 4), (1, 0)):
        engine = control_engine(40, 4)
        add(engine, "a", range(16))
        run_to_end(engine)
        other = list(range(16))
        other[changed] = 77
        add(engine, "b", other)
        run_to_end(engine)
        assert last(engine).cached == {"b": hit}


def test_case_06_reference_counts_follow_the_tables():
    engine = control_engine(12, 4)
    add(engine, "a", [*range(8), 50], 9)
    add(engine, "b", [*range(8), 60, 61], 9)
    engine.step()
    shared = last(engine).block_tables["a"][:2]
    count = engine.cache.pool.ref_count
    assert ([count(b) for b in shared], free(engine)) == ([2, 2], 8)
    engine.abort("a")
    assert ([count(b) for b in shared], free(engine)) == ([1, 1], 9)
    engine.abort("b")
    assert free(engine) == 12


def test_case_07_the_end_of_a_prefix_is_evicted_before_its_start():
    engine = control_engine(4, 4)
    for name, prompt in (("a", range(16)), ("b", range(100, 108)), ("a2", range(16))):
        add(engine, name, prompt)
        run_to_end(engine)
    assert last(engine).cached == {"a2": 8}
    assert last(engine).scheduled == {"a2": 8}


def test_case_08_salts_keep_requests_apart():
    engine = control_engine(20, 16)
    for name, salt in (("a", "x"), ("b", "x"), ("c", "y"), ("d", None)):
        add(engine, name, range(40), cache_salt=salt)
        run_to_end(engine)
    hits = {name: hit for record in engine.trace for name, hit in record.cached.items()}
    assert hits == {"a": 0, "b": 32, "c": 0, "d": 0}


def test_case_09_a_lookup_moves_nothing():
    pool = BlockPool(10)
    cache = PrefixCache(pool, 16)
    common = list(range(48))

    def place(name, tokens):
        request = Request(name, tokens)
        hit = cache.lookup(request)
        cache.admit(request, hit)
        cache.grow(request, len(tokens))
        return request, 16 * len(hit)

    place("r0", common)
    assert pool.num_free == 7
    r1, hit = place("r1", common + common)
    assert (hit, pool.num_free) == (48, 4)
    cache.release(r1)
    assert pool.num_free == 7
    place("r2", list(range(1000, 1032)))
    assert pool.num_free == 5
    order, counts = pool.free_block_ids(), [pool.ref_count(b) for b in range(10)]
    r3 = Request("r3", common + common + common)
    hit_blocks = cache.lookup(r3)
    assert 16 * len(hit_blocks) == 96
    needed = 9 - len(hit_blocks) + sum(pool.ref_count(b) == 0 for b in hit_blocks)
    assert needed > pool.num_free
    assert pool.free_block_ids() == order
    assert [pool.ref_count(b) for b in range(10)] == counts


def test_case_09_as_engine_steps_the_big_request_waits():
    common = list(range(48))
    engine = control_engine(10, 16)
    seen = []
    add(engine, "r0", common, 50)
    engine.step()
    seen.append(free(engine))
    add(engine, "r1", common + common, 50)
    engine.step()
    seen.append(free(engine))
    engine.abort("r1")
    seen.append(free(engine))
    add(engine, "r2", range(1000, 1032), 50)
    engine.step()
    seen.append(free(engine))
    add(engine, "r3", common * 3, 50)
    engine.step()
    seen.append(free(engine))
    assert seen == [7, 3, 6, 4, 3]
    assert last(engine).waiting == ["r3"]
    assert list(last(engine).scheduled) == ["r0", "r2"]


def test_case_10_a_hit_is_taken_before_anything_is_evicted():
    engine = control_engine(2, 16)
    for name, prompt in (("r0", range(16)), ("r1", range(16, 32))):
        add(engine, name, prompt)
        run_to_end(engine)
    kept = engine.trace[0].block_tables["r0"]
    reused = engine.trace[1].block_tables["r1"]
    add(engine, "r2", range(32))
    run_to_end(engine)
    assert last(engine).cached == {"r2": 16}
    assert last(engine).block_tables["r2"] == kept + reused


def test_case_11_without_cache_there_are_no_hits():
    engine = control_engine(4, 4, enable_prefix_caching=False)
    add(engine, "a", range(10))
    run_to_end(engine)
    assert len(engine.trace[0].block_tables["a"]) == 3
    add(engine, "b", range(16))
    run_to_end(engine)
    assert last(engine).cached == {"b": 0}
    assert len(last(engine).block_tables["b"]) == 4


def test_case_12_the_next_turn_of_a_chat_hits_prompt_and_answer():
    engine = control_engine(20, 16)
    add(engine, "turn1", range(20), 13)
    answer = run_to_end(engine)["turn1"].token_ids
    assert len(answer) == 13
    add(engine, "turn2", [*range(20), *answer, *range(500, 507)])
    run_to_end(engine)
    assert last(engine).cached == {"turn2": 32}
    assert last(engine).scheduled == {"turn2": 8}


def test_case_13_a_shared_prefix_is_computed_once():
    engine = control_engine(40, 16)
    for i in range(4):
        add(engine, f"r{i}", [*range(40), *range(1000 + 10 * i, 1003 + 10 * i)])
        run_to_end(engine)
    assert sum(record.total for record in engine.trace) == 76


def test_case_14_two_equal_prompts_in_one_step_share():
    engine = control_engine(8, 4)
    add(engine, "a", range(9), 2)
    add(engine, "b", range(9), 2)
    engine.step()
    assert (scheduled(engine), free(engine)) == ([[9, 1]], 4)


def test_case_15_reset_refuses_while_a_block_is_in_use():
    engine = control_engine(8, 4)
    add(engine, "a", range(8), 3)
    engine.step()
    names = engine.cache.num_names
    assert not engine.cache.reset()
    assert engine.cache.num_names == names == 2
    run_to_end(engine)
    assert engine.cache.reset()
    assert engine.cache.num_names == 0
    add(engine, "b", range(8))
    run_to_end(engine)
    assert last(engine).cached == {"b": 0}


def test_case_15_a_colliding_hash_serves_no_foreign_kv():
    pool = BlockPool(20)
    cache = PrefixCache(pool, 4, hash_function=lambda key: 7)
    for name, tokens in (("a", [0, 1, 2, 3, 8, 9, 10, 11]), ("b", [4, 5, 6, 7, *range(20, 25)])):
        request = Request(name, tokens)
        cache.admit(request, cache.lookup(request))
        cache.grow(request, len(tokens))
        cache.release(request)
    c = Request("c", [4, 5, 6, 7, 8, 9, 10, 11, 12])
    assert 4 * len(cache.lookup(c)) == 4  # not 8: the second block follows another first block


def test_case_15_the_name_table_never_outgrows_the_pool():
    rng = random.Random(15)
    engine = control_engine(16, 4, max_num_seqs=8)
    for number in range(10_000):
        prompt = [rng.randrange(3) for _ in range(rng.randrange(1, 24))]
        add(engine, f"r{number}", prompt, rng.randrange(1, 4))
        if number % 4 == 3:
            run_to_end(engine)
            assert engine.cache.num_names <= 16
