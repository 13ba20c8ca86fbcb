"""Owns traces of the real control plane for the figures' tests: no model, no torch."""

from __future__ import annotations

from mini_engine.trace import StepRecord
from tests.control.workloads import add, control_engine, run_to_end


def chunked() -> list[StepRecord]:
    """Two decodes and a prompt of 10 under budget 6: chunks of 4, 4 and 2."""
    engine = control_engine(64, 4, max_num_batched_tokens=6)
    add(engine, "a", range(2), 8)
    add(engine, "b", range(100, 102), 8)
    engine.step()
    add(engine, "c", range(200, 210), 2)
    run_to_end(engine)
    return engine.trace


def preempting() -> list[StepRecord]:
    """Case 18: B is preempted, waits, and computes its known tokens again."""
    engine = control_engine(4, 4, enable_prefix_caching=False)
    add(engine, "A", range(6), 6)
    add(engine, "B", range(10, 16), 6)
    run_to_end(engine)
    return engine.trace


def sharing() -> list[StepRecord]:
    """Case 3: A and B share three blocks; then both are aborted and C hits the freed blocks."""
    common = list(range(48))
    engine = control_engine(10, 16)
    add(engine, "A", common + list(range(100, 107)), 9)
    engine.step()
    add(engine, "B", common + list(range(200, 205)), 9)
    engine.step()
    engine.abort("A")
    engine.abort("B")
    add(engine, "C", common + list(range(300, 306)), 2)
    run_to_end(engine)
    return engine.trace


def starving() -> list[StepRecord]:
    """By hand: b has its blocks, and in step 1 the whole budget goes to a, admitted before it."""
    first = StepRecord(
        step=0,
        arrived=["a", "b"],
        scheduled={"a": 3, "b": 1},
        total=4,
        running=["a", "b"],
        computed={"a": 0, "b": 0},
        block_tables={"a": [0], "b": [1]},
        free_blocks=2,
    )
    second = StepRecord(
        step=1,
        scheduled={"a": 4},
        total=4,
        running=["a", "b"],
        computed={"a": 3},
        block_tables={"a": [0, 2]},
        free_blocks=1,
    )
    return [first, second]
