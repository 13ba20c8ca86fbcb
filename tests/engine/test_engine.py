"""The engine's own promises: outputs, trace, errors, failed steps, and memory that comes back."""

from __future__ import annotations

import gc
from pathlib import Path

import psutil
import pytest

from mini_engine import EngineParts, LLMEngine, SamplingParams
from mini_engine.benchmarks.replay import ScriptedRunner
from mini_engine.compute.random_model import TINY_LLAMA, random_model
from mini_engine.control.scheduler import Scheduler
from mini_engine.interfaces import Schedule
from mini_engine.trace import dump_trace, load_trace
from tests.control.workloads import add, control_engine, run_to_end


@pytest.fixture
def engine():
    with LLMEngine(
        random_model(TINY_LLAMA, seed=1),
        device="cpu",
        num_blocks=40,
        block_size=4,
        max_model_len=64,
    ) as engine:
        yield engine


def test_generate_returns_outputs_in_the_order_of_the_prompts(engine):
    long_first = [SamplingParams(9), SamplingParams(1), SamplingParams(4)]
    outputs = engine.generate([[1, 2], [3], [4, 5, 6]], long_first)
    assert [o.prompt_token_ids for o in outputs] == [[1, 2], [3], [4, 5, 6]]
    assert [len(o.token_ids) for o in outputs] == [9, 1, 4]
    assert {o.finish_reason for o in outputs} == {"length"}


def test_a_second_call_gives_the_same_and_new_ids(engine):
    first = engine.generate([[1, 2, 3]], SamplingParams(8))[0]
    engine.cache.reset()
    second = engine.generate([[1, 2, 3]], SamplingParams(8))[0]
    third = engine.generate([[1, 2, 3]], SamplingParams(8))[0]  # now with a prefix hit
    assert first.token_ids == second.token_ids == third.token_ids
    assert len({first.request_id, second.request_id, third.request_id}) == 3


def test_steps_give_the_new_tokens_only(engine):
    engine.add_request([7, 8, 9], SamplingParams(5), request_id="a")
    outputs = []
    while engine.has_unfinished:
        outputs += engine.step()
    assert [len(o.new_token_ids) for o in outputs] == [1] * 5
    assert [o.finished for o in outputs] == [False] * 4 + [True]
    assert [t for o in outputs for t in o.new_token_ids] == outputs[-1].token_ids
    assert engine.step() == []


def test_a_failed_forward_pass_loses_nothing(engine):
    expected = engine.generate([[5, 6, 7, 8, 9]], SamplingParams(6))[0].token_ids
    engine.cache.reset()
    engine.add_request([5, 6, 7, 8, 9], SamplingParams(6), request_id="a")
    engine.step()
    run = engine.runner.run
    engine.runner.run = lambda schedule: (_ for _ in ()).throw(RuntimeError("out of memory"))
    with pytest.raises(RuntimeError, match="out of memory"):
        engine.step()
    engine.runner.run = run
    final = []
    while engine.has_unfinished:
        final += [o for o in engine.step() if o.finished]
    assert final[0].token_ids == expected
    assert engine.cache.pool.num_free == 40


def test_generate_that_raises_leaves_no_request_behind(engine):
    with pytest.raises(ValueError, match="max_model_len is 64"):
        engine.generate([[1, 2], [3] * 64])
    assert not engine.has_unfinished
    assert engine.cache.pool.num_free == 40
    assert len(engine.generate([[1, 2]], SamplingParams(2))[0].token_ids) == 2


def test_abort_returns_what_there_was():
    engine = control_engine(20, 4)
    add(engine, "a", range(5), 9)
    for _ in range(3):
        engine.step()
    output = engine.abort("a")
    assert (output.finish_reason, len(output.token_ids)) == ("abort", 3)
    assert engine.abort("a") is None
    assert engine.cache.pool.num_free == 20


def test_abort_in_mid_step_drops_the_token_sampled_in_it():
    engine = control_engine(20, 4)
    add(engine, "a", range(5), 9)
    add(engine, "b", range(100, 105), 9)
    engine.step()
    engine.runner.during = lambda: engine.abort("a")
    outputs = engine.step()
    engine.runner.during = None
    assert [o.request_id for o in outputs] == ["b"]
    assert list(engine.trace[-1].sampled) == ["b"]
    assert engine.trace[-1].scheduled == {"a": 1, "b": 1}
    run_to_end(engine)
    assert engine.cache.pool.num_free == 20


@pytest.mark.parametrize(
    ("prompt", "error", "message"),
    [
        ([], ValueError, "empty prompt"),
        ([1, -2], TypeError, "ints of 0 or more, got -2"),
        ([1, True], TypeError, "got True"),
        ([1, 2.0], TypeError, "got 2.0"),
        ([1, 512], ValueError, "token id 512, the vocabulary has 512"),
        ("text", ValueError, "no tokenizer"),
    ],
)
def test_prompts_that_make_no_sense_are_refused(engine, prompt, error, message):
    with pytest.raises(error, match=message):
        engine.add_request(prompt)
    assert not engine.has_unfinished


def test_unknown_options_get_a_suggestion():
    with pytest.raises(TypeError, match="no argument 'num_block'; did you mean 'num_blocks'"):
        LLMEngine(runner=ScriptedRunner(), num_block=4)


def test_one_string_is_no_list_of_prompts(engine):
    with pytest.raises(TypeError, match="list of prompts"):
        engine.generate("hello")


def test_a_scheduler_that_never_schedules_is_no_hang():
    class Idle(Scheduler):
        def schedule(self) -> Schedule:
            return Schedule()

    engine = LLMEngine(
        runner=ScriptedRunner(),
        parts=EngineParts(scheduler=Idle),
        num_blocks=4,
        block_size=4,
        max_model_len=16,
    )
    with pytest.raises(RuntimeError, match="chose no tokens in 3 steps"):
        engine.generate([[1, 2]])


def test_the_trace_survives_a_round_trip(engine, tmp_path: Path):
    engine.generate([[1, 2, 3], [1, 2, 3, 4, 5]], SamplingParams(3))
    path = tmp_path / "trace.jsonl"
    dump_trace(engine.trace, engine.describe(), path)
    config, records = load_trace(path)
    assert records == engine.trace
    assert config["block_size"] == 4
    path.write_text('{"trace_version": 99}\n')
    with pytest.raises(ValueError, match="trace_version 99, this reader needs 1 or 2"):
        load_trace(path)
    path.write_text("hello\n")
    with pytest.raises(ValueError, match="is no trace"):
        load_trace(path)


def test_two_runs_leave_the_same_trace_but_for_times():
    traces = []
    for _ in range(2):
        engine = control_engine(12, 4, max_num_batched_tokens=9)
        for i in range(6):
            add(engine, f"r{i}", range(10 * i, 10 * i + 5 + i), 6)
        run_to_end(engine)
        traces.append([record.without_times() for record in engine.trace])
        assert all(r.times and r.times.end >= r.times.start for r in engine.trace)
    assert traces[0] == traces[1]


def test_a_closed_engine_says_so(engine):
    engine.add_request([1, 2])
    engine.close()
    engine.close()
    with pytest.raises(RuntimeError, match="closed"):
        engine.step()


def test_closing_gives_the_memory_back():
    """Five engines with 256 MiB of KV each, one after another, leave less than a quarter of one.

    Keys and values are 128 MiB each, far above what the C library keeps for itself when freed.
    """
    model = random_model(TINY_LLAMA, seed=1)
    num_blocks = 256 * 2**20 // (TINY_LLAMA.kv_bytes_per_token(4) * 16)
    process = psutil.Process()

    def open_and_close() -> int:
        with LLMEngine(model, device="cpu", num_blocks=num_blocks, max_model_len=64) as engine:
            engine.generate([[1, 2, 3]], SamplingParams(3))
            return process.memory_info().rss

    open_and_close()
    gc.collect()
    baseline = process.memory_info().rss
    while_open = [open_and_close() for _ in range(5)]
    gc.collect()
    assert min(while_open) - baseline > 192 * 2**20
    assert process.memory_info().rss - baseline < 64 * 2**20
