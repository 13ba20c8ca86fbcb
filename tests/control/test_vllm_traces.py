"""SEMANTICS 27: vLLM's own scheduler made these traces; ours decides the same in every step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.control.workloads import run_workload

FOLDER = Path(__file__).parents[1] / "data" / "vllm_traces"
NAMES = sorted(path.stem.removeprefix("trace_") for path in FOLDER.glob("trace_*.json"))


def load(kind: str, name: str) -> Any:
    return json.loads((FOLDER / f"{kind}_{name}.json").read_text(encoding="utf-8"))


def test_case_27_there_are_traces() -> None:
    assert len(NAMES) >= 14


@pytest.mark.parametrize("name", NAMES)
def test_case_27_every_step_is_scheduled_as_vllm_does(name: str) -> None:
    engine, _ = run_workload(load("workload", name))
    expected = load("trace", name)
    records = engine.trace
    for ours, theirs in zip(records, expected["steps"], strict=False):
        got = {
            "scheduled": list(ours.scheduled.items()),
            "total": ours.total,
            "preempted": ours.preempted,
            "new": ours.new,
            "resumed": ours.resumed,
            "running": ours.running,
            "waiting": ours.waiting,
            "computed": ours.computed,
            "cached": ours.cached,
            "free_blocks": ours.free_blocks,
            "sampled": {name: [token] for name, token in ours.sampled.items()},
            "finished": sorted(ours.finished),
            "running_end": ours.running_end,
            "free_blocks_end": ours.free_blocks_end,
        }
        want = {key: theirs[key] for key in got}
        want["scheduled"] = list(theirs["scheduled"].items())
        want["finished"] = sorted(theirs["finished"])
        assert got == want, f"step {theirs['step']} of {name}"
    assert len(records) == len(expected["steps"])


@pytest.mark.parametrize("name", NAMES)
def test_case_27_every_request_ends_as_in_vllm(name: str) -> None:
    engine, refused = run_workload(load("workload", name))
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
