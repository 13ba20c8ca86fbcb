"""SEMANTICS 16 to 26: the scheduler, driven by made-up samples."""

from __future__ import annotations

import pytest

from mini_engine.config import EngineConfig
from mini_engine.control.request import Request
from mini_engine.control.waiting import WaitingQueue
from mini_engine.sampling_params import SamplingParams
from tests.control.workloads import add, control_engine, free, run_to_end, scheduled


def steps_with_free(engine):
    """[tokens per request, free blocks after the step] of every step so far."""
    return [(list(r.scheduled.values()), r.free_blocks_end) for r in engine.trace]


@pytest.mark.parametrize(("budget", "chunks"), [(6, [4, 4, 2]), (12, [10])])
def test_case_16_decodes_first_the_prompt_gets_the_rest(budget, chunks):
    engine = control_engine(64, 16, max_num_batched_tokens=budget)
    add(engine, "d0", [1], 30)
    add(engine, "d1", [2], 30)
    engine.step()
    add(engine, "long", range(100, 110), 2)
    for _ in range(6):
        engine.step()
    got = [r.scheduled["long"] for r in engine.trace if "long" in r.scheduled]
    assert got[: len(chunks)] == chunks
    assert all(r.scheduled["d0"] == r.scheduled["d1"] == 1 for r in engine.trace)


def test_case_17_a_long_prompt_arrives_among_decodes():
    engine = control_engine(64, 16, max_num_batched_tokens=64)
    for i in range(3):
        add(engine, f"short{i}", range(100 * i, 100 * i + 12), 12)
    for _ in range(3):
        engine.step()
    add(engine, "long", range(1000, 1141), 6)
    run_to_end(engine)
    long = [r.scheduled["long"] for r in engine.trace if "long" in r.scheduled]
    assert long == [61, 61, 19, 1, 1, 1, 1, 1]
    short = [r.scheduled["short0"] for r in engine.trace if "short0" in r.scheduled]
    assert short == [12] + [1] * 11


def test_case_18_preemption_by_recomputation():
    engine = control_engine(4, 4, enable_prefix_caching=False)
    add(engine, "a", range(6), 6)
    add(engine, "b", range(10, 16), 6)
    final = run_to_end(engine)
    assert steps_with_free(engine)[:3] == [([6, 6], 0), ([1, 1], 0), ([1, 1], 0)]
    fourth = engine.trace[3]
    assert (fourth.scheduled, fourth.preempted, fourth.free_blocks) == ({"a": 1}, ["b"], 1)
    assert scheduled(engine)[4:] == [[1], [1], [9], [1], [1]]
    assert engine.trace[5].finished == {"a": "length"}
    assert engine.trace[5].free_blocks_end == 4
    assert [r.sampled.get("b") for r in engine.trace[:3]] == [900_000, 900_001, 900_002]
    assert len(engine.trace) == 9
    roomy = control_engine(40, 4, enable_prefix_caching=False)
    add(roomy, "b", range(10, 16), 6)
    assert run_to_end(roomy)["b"].token_ids == final["b"].token_ids


def test_case_19_only_the_last_one_is_preempted():
    engine = control_engine(6, 4)
    for name, start in (("a", 0), ("b", 100), ("c", 200)):
        add(engine, name, range(start, start + 7), 6)
    run_to_end(engine)
    assert [r.preempted for r in engine.trace[:3]] == [[], [], ["c"]]
    assert list(engine.trace[5].finished) == ["a", "b"]
    c = [r.scheduled["c"] for r in engine.trace[6:]]
    assert c == [9, 1, 1, 1]


def test_case_20_nobody_overtakes_the_head_of_the_queue():
    engine = control_engine(4, 4, enable_prefix_caching=False)
    add(engine, "a", range(8), 3)
    engine.step()
    add(engine, "b", range(100, 112), 3)
    add(engine, "c", range(200, 204), 3)
    for _ in range(3):
        engine.step()
    assert steps_with_free(engine)[:1] == [([8], 2)]
    assert [(r.scheduled, r.free_blocks) for r in engine.trace[1:3]] == [
        ({"a": 1}, 1),
        ({"a": 1}, 1),
    ]
    assert engine.trace[2].free_blocks_end == 4
    assert engine.trace[3].scheduled == {"b": 12, "c": 4}


def test_case_21_what_can_never_fit_is_refused():
    engine = control_engine(4, 4)
    with pytest.raises(ValueError, match=r"17 tokens and needs 5 blocks, the pool has 4"):
        add(engine, "big", range(17))
    assert not engine.has_unfinished
    add(engine, "fits", range(15), 1)
    assert run_to_end(engine)["fits"].finish_reason == "length"
    assert not any(r.preempted for r in engine.trace)


def test_case_22_the_cap_counts_what_runs_not_what_starts():
    engine = control_engine(64, 16, max_num_seqs=2)
    for i in range(6):
        add(engine, f"r{i}", range(100 * i, 100 * i + 5), 3)
    run_to_end(engine)
    assert max(len(r.running) for r in engine.trace) == 2
    engine = control_engine(64, 16, max_num_seqs=2)
    for i in range(3):
        add(engine, f"r{i}", range(100 * i, 100 * i + 3), 2)
    run_to_end(engine)
    assert scheduled(engine) == [[3, 3], [1, 1], [3], [1]]


@pytest.mark.parametrize(
    ("chunked", "expected"), [(True, [[800, 224], [1, 576, 10]]), (False, [[800], [1, 800, 10]])]
)
def test_case_23_chunked_prefill_on_and_off(chunked, expected):
    engine = control_engine(
        200,
        16,
        max_num_batched_tokens=1024,
        max_num_seqs=3,
        max_model_len=1024,
        enable_chunked_prefill=chunked,
    )
    for i, length in enumerate((800, 800, 10, 10)):
        add(engine, f"r{i}", range(1000 * i, 1000 * i + length), 5)
    engine.step()
    engine.step()
    assert scheduled(engine) == expected


def test_case_23_without_chunks_the_config_must_allow_the_longest_prompt():
    with pytest.raises(ValueError, match=r"max_num_batched_tokens=100 must be max_model_len=200"):
        EngineConfig(max_num_batched_tokens=100, max_model_len=200, enable_chunked_prefill=False)
    with pytest.raises(ValueError, match="long_prefill_token_threshold=8"):
        EngineConfig(long_prefill_token_threshold=8, enable_chunked_prefill=False)


def test_case_24_the_second_of_two_equal_prompts_hits_the_chunks_of_the_first():
    engine = control_engine(20, 4, max_num_batched_tokens=8)
    add(engine, "a", range(20), 2)
    engine.step()
    add(engine, "b", range(20), 2)
    run_to_end(engine)
    assert scheduled(engine) == [[8], [8], [4, 4], [1, 1]]
    assert engine.trace[2].cached == {"b": 16}
    assert free(engine) == 20


def test_case_25_ends_by_length_and_by_capacity():
    engine = control_engine(20, 4, max_model_len=12)
    add(engine, "a", range(9), 10)
    a = run_to_end(engine)["a"]
    assert (len(a.token_ids), a.finish_reason) == (3, "length")
    engine = control_engine(3, 4)
    add(engine, "a", range(7), 50)
    a = run_to_end(engine)["a"]
    assert (len(a.token_ids), a.finish_reason, len(engine.trace)) == (6, "capacity", 6)
    engine = control_engine(3, 4)
    add(engine, "a", range(4), 3)
    add(engine, "b", range(12), 3)
    final = run_to_end(engine)
    tables = engine.trace[0].block_tables
    assert tables["b"][0] == tables["a"][0]
    assert (len(final["b"].token_ids), final["b"].finish_reason) == (1, "capacity")


def test_case_26_the_least_urgent_is_the_victim_and_keeps_its_place():
    engine = control_engine(
        10, 4, max_num_batched_tokens=64, policy="priority", long_prefill_token_threshold=8
    )
    add(engine, "low", range(32), 20, priority=5)
    add(engine, "short", [700, 701], 1, priority=9)
    engine.step()
    add(engine, "high", range(500, 507), 6, priority=0)
    run_to_end(engine)
    fourth = engine.trace[3]
    assert (fourth.scheduled, fourth.preempted) == ({"high": 1}, ["low"])
    assert fourth.free_blocks == 7
    later = [r.cached["low"] for r in engine.trace[4:] if "low" in r.cached]
    assert later == [24]


@pytest.mark.parametrize("policy", ["fcfs", "priority"])
def test_case_26_arriving_prompts_never_starve_a_decode(policy):
    engine = control_engine(60, 4, max_num_batched_tokens=12, max_num_seqs=6, policy=policy)
    add(engine, "decode", range(5), 40)
    engine.step()
    for i in range(30):
        add(engine, f"p{i}", range(1000 * i, 1000 * i + 30), 2)
        engine.step()
    mine = [r for r in engine.trace if "decode" in r.running and "decode" not in r.preempted]
    assert all("decode" in r.scheduled or r.total == 12 for r in mine), (
        "skipped though budget was left"
    )
    assert sum("decode" in r.scheduled for r in mine) == len(mine)


def test_a_victim_scheduled_before_others_gives_back_tokens_and_skips_nobody():
    """Priority: low runs first in the step, then has to go for mid; high behind them gains."""
    engine = control_engine(
        10, 4, enable_prefix_caching=False, policy="priority", max_num_batched_tokens=3
    )
    for name, start, priority in (("low", 0, 5), ("mid", 100, 3)):
        add(engine, name, range(start, start + 4), 30, priority=priority)
        for _ in range(5):
            engine.step()
    add(engine, "high", range(200, 212), 9, priority=0)
    while not engine.trace[-1].preempted:
        engine.step()
    before, preempting = engine.trace[-2:]
    # two decodes and a chunk of 1 fill the budget of 3; low's token goes back and high gets it
    assert before.scheduled == {"low": 1, "mid": 1, "high": 1}
    assert preempting.preempted == ["low"]
    assert preempting.scheduled == {"mid": 1, "high": 2}


def test_stop_wins_over_length_and_the_token_stays():
    engine = control_engine(20, 4, scripts={"a": [5, 6, 7]})
    engine.add_request([1, 2], SamplingParams(3, stop_token_ids=(7,)), request_id="a")
    a = run_to_end(engine)["a"]
    assert (a.token_ids, a.finish_reason) == ([5, 6, 7], "stop")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_num_batched_tokens": 0}, "max_num_batched_tokens must be 1 or more, got 0"),
        ({"max_num_seqs": 0}, "max_num_seqs must be 1 or more, got 0"),
        ({"num_blocks": 0}, "num_blocks must be 1 or more, got 0"),
        ({"block_size": 0}, "block_size must be 1 or more, got 0"),
        ({"watermark": 1.5}, "watermark is a share"),
        ({"policy": "sjf"}, "policy must be one of fcfs, priority"),
    ],
)
def test_sizes_below_one_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        EngineConfig(**options)


def test_max_tokens_below_one_is_refused():
    with pytest.raises(ValueError, match="max_tokens must be 1 or more, got 0"):
        SamplingParams(max_tokens=0)
    with pytest.raises(TypeError, match="max_tokens must be an int, got True"):
        SamplingParams(max_tokens=True)


def test_prompts_that_cannot_be_served_name_both_numbers():
    engine = control_engine(20, 4, max_model_len=12)
    with pytest.raises(ValueError, match="12 tokens, max_model_len is 12"):
        add(engine, "a", range(12))
    with pytest.raises(ValueError, match="empty prompt"):
        add(engine, "b", [])
    add(engine, "c", range(3))
    with pytest.raises(ValueError, match="ids must be unique"):
        add(engine, "c", range(3))
    assert list(run_to_end(engine)) == ["c"]


def test_the_waiting_queue_reads_as_a_sequence():
    queue = WaitingQueue("fcfs")
    a, b, c = (Request(name, [1]) for name in "abc")
    queue.push(a)
    queue.push(b)
    queue.push_preempted(c)
    assert list(queue) == [queue[0], queue[1], queue[2]] == [c, a, b]
    assert (queue[-1], queue[1:]) == (b, [a, b])
    with pytest.raises(IndexError):
        queue[3]


@pytest.mark.parametrize(("length", "admitted"), [(24, ["a", "b"]), (28, ["a"])])
def test_the_watermark_counts_beside_others(length, admitted):
    """2 of 10 blocks are kept free; a takes 2, so b may take 6, although 8 are left."""
    engine = control_engine(10, 4, watermark=0.2)
    add(engine, "a", range(8), 2)
    add(engine, "b", range(100, 100 + length), 2)
    engine.step()
    assert engine.trace[0].new == admitted


def test_the_watermark_does_not_count_for_a_request_alone():
    engine = control_engine(10, 4, watermark=0.2)
    add(engine, "a", range(39), 1)
    engine.step()
    assert engine.trace[0].scheduled == {"a": 39}


def test_the_threshold_caps_a_chunk_unless_the_request_is_alone():
    options = {"max_num_batched_tokens": 64, "long_prefill_token_threshold": 8}
    engine = control_engine(40, 4, **options)
    add(engine, "a", range(20), 1)
    engine.step()
    assert scheduled(engine) == [[20]]
    engine = control_engine(40, 4, **options)
    add(engine, "a", range(20), 1)
    add(engine, "b", range(100, 103), 1)
    run_to_end(engine)
    assert scheduled(engine) == [[8, 3], [12]]  # then b has ended
