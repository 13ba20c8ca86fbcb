"""SEMANTICS 27: vLLM's own scheduler made these traces; ours decides the same in every step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mini_engine.benchmarks.replay import Replay, as_records, first_difference

FOLDER = Path(__file__).parents[1] / "data" / "vllm_traces"
NAMES = sorted(path.stem.removeprefix("trace_") for path in FOLDER.glob("trace_*.json"))


def load(kind: str, name: str) -> Any:
    return json.loads((FOLDER / f"{kind}_{name}.json").read_text(encoding="utf-8"))


def test_case_27_there_are_traces() -> None:
    assert len(NAMES) >= 14


@pytest.mark.parametrize("name", NAMES)
def test_case_27_every_step_is_scheduled_as_vllm_does(name: str) -> None:
    replay = Replay(load("workload", name), debug=True).run()
    expected = as_records(load("trace", name)["steps"])
    assert first_difference(expected, replay.engine.trace) is None


@pytest.mark.parametrize("name", NAMES)
def test_case_27_every_request_ends_as_in_vllm(name: str) -> None:
    replay = Replay(load("workload", name)).run()
    engine, refused = replay.engine, replay.refused
    outputs: dict[str, list[int]] = {}
    preemptions: dict[str, int] = {}
    for record in engine.trace:
        for request_id, token in record.sampled.items():
            outputs.setdefault(request_id, []).append(token)
        for request_id in record.preempted:
            preemptions[request_id] = preemptions.get(request_id, 0) + 1
    expected = load("trace", name)
    for request_id, request in expected["requests"].items():
        assert outputs.get(request_id, []) == request["output"]
        assert preemptions.get(request_id, 0) == request["preemptions"]
    assert refused == list(expected.get("rejected", {}))
