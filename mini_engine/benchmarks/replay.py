"""Owns recorded workloads: runs them through the control plane, and compares with vLLM's traces.

A workload names its requests, when they come and go, and the tokens that they sample, so no model
is needed. `tests/data/vllm_traces/README.md` explains both formats.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mini_engine.engine import LLMEngine
from mini_engine.interfaces import Schedule
from mini_engine.parts import EngineParts
from mini_engine.sampling_params import SamplingParams
from mini_engine.trace import StepRecord

OPTIONS = (
    "block_size",
    "max_num_batched_tokens",
    "max_num_seqs",
    "max_model_len",
    "enable_prefix_caching",
    "enable_chunked_prefill",
    "policy",
    "long_prefill_token_threshold",
    "watermark",
)
# What has to agree in every step; `scheduled` in its order too.
COMPARED = (
    "scheduled",
    "total",
    "preempted",
    "new",
    "resumed",
    "running",
    "waiting",
    "computed",
    "cached",
    "free_blocks",
    "sampled",
    "finished",
    "running_end",
    "free_blocks_end",
)
MOST_STEPS = 10_000
Workload = Mapping[str, Any]


@dataclass
class ScriptedRunner:
    """Samples the next token of each request's script; without one, the number of the output."""

    scripts: dict[str, list[int]] = field(default_factory=dict)
    during: Callable[[], None] | None = None  # called in the middle of each step

    def run(self, schedule: Schedule) -> dict[str, int]:
        """One token for each request whose chunk reaches its end."""
        sampled = {}
        for chunk in schedule.chunks:
            if chunk.samples:
                request = chunk.request
                index = len(request.output_token_ids)
                script = self.scripts.get(request.request_id)
                sampled[request.request_id] = script[index] if script else 900_000 + index
        if self.during is not None:
            self.during()
        return sampled


class Replay:
    """A workload on an engine of `parts`; `run` leaves the engine's trace and who was refused.

    If a part raises, the records up to there stay in `engine.trace`.
    """

    def __init__(
        self, workload: Workload, parts: EngineParts | None = None, *, debug: bool = False
    ) -> None:
        self.workload = workload
        self.refused: list[str] = []
        self.runner = ScriptedRunner({one["id"]: one["output"] for one in workload["requests"]})
        self.engine = LLMEngine(
            parts=parts,
            runner=self.runner,
            num_blocks=workload["num_blocks"] - 1,  # vLLM keeps block 0 for itself
            debug=debug,
            **{name: workload[name] for name in OPTIONS if name in workload},
        )

    def run(self) -> Replay:
        """Run all steps: arrivals, aborts, schedule, aborts, samples. Returns itself."""
        requests = self.workload["requests"]
        last = max(one["arrival_step"] for one in requests)
        for step in range(MOST_STEPS):
            for one in requests:
                if one["arrival_step"] == step:
                    self._arrive(one)
            self._abort([one["id"] for one in requests if one.get("abort_at_step") == step])
            aborted = [one["id"] for one in requests if one.get("abort_during_step") == step]
            self.runner.during = functools.partial(self._abort, aborted)
            self.engine.step()
            if step >= last and not self.engine.has_unfinished:
                return self
        raise RuntimeError(f"the workload did not end in {MOST_STEPS} steps")

    def _abort(self, names: Sequence[str]) -> None:
        for name in names:
            self.engine.abort(name)

    def _arrive(self, one: Mapping[str, Any]) -> None:
        params = SamplingParams(
            max_tokens=one.get("max_tokens", len(one["output"])),
            stop_token_ids=tuple(one.get("stop_token_ids", ())),
        )
        try:
            self.engine.add_request(
                one["prompt"],
                params,
                request_id=one["id"],
                priority=one.get("priority", 0),
                cache_salt=one.get("cache_salt"),
            )
        except ValueError:
            self.refused.append(one["id"])


def as_records(steps: Sequence[Mapping[str, Any]]) -> list[StepRecord]:
    """vLLM's steps as the engine's own records, so that figures can draw them.

    They don't know why a request ended, so `finished` says "done".
    """
    records = []
    for number, step in enumerate(steps):
        fields = {key: step[key] for key in ("arrived", "aborted", *COMPARED)}
        fields["sampled"] = {name: tokens[0] for name, tokens in step["sampled"].items()}
        fields["finished"] = dict.fromkeys(step["finished"], "done")
        records.append(StepRecord(step=number, **fields))
    return records


def differences(theirs: StepRecord, ours: StepRecord) -> Iterator[str]:
    """What two schedulers did otherwise in a step, one line each."""
    for name in COMPARED:
        expected, got = getattr(theirs, name), getattr(ours, name)
        if name == "scheduled":  # a batch has an order
            expected, got = list(expected.items()), list(got.items())
        elif name == "finished":
            expected, got = sorted(expected), sorted(got)
        if expected != got:
            yield f"{name}: {expected} and {got}"


def first_difference(
    theirs: Sequence[StepRecord], ours: Sequence[StepRecord]
) -> tuple[int, list[str]] | None:
    """(step, what differs) where two runs of a workload part; None if they are the same."""
    for number, (expected, got) in enumerate(zip(theirs, ours, strict=False)):
        found = list(differences(expected, got))
        if found:
            return number, found
    if len(theirs) != len(ours):
        return min(len(theirs), len(ours)), [f"steps: {len(theirs)} and {len(ours)}"]
    return None
