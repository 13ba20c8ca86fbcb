"""Owns the trace: one StepRecord per step, written as JSON lines.

Figures, widgets, metrics and the judge all read this and nothing else. The fields are a superset of
those in which vLLM's own schedules were recorded (tests/data/vllm_traces), under the same names.
Times are kept apart from the rest, so that two runs can be compared without them. No torch.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TRACE_VERSION = 2
READABLE_VERSIONS = (1, 2)  # 2 added graph_bucket, for which a trace of version 1 has the default


@dataclass(frozen=True)
class StepTimes:
    """Seconds: `start` and `end` since the engine was made, and the three parts of the step."""

    start: float
    schedule: float
    run: float
    update: float
    end: float


@dataclass(frozen=True)
class StepRecord:
    """What happened in one step.

    `scheduled` maps request ids to the tokens computed in this step, in batch order; `computed` to
    the tokens computed before it (prefix hits included); `cached` to the hit of the requests
    admitted in it. `new` and `resumed` are admitted for the first time and again; `running`,
    `waiting` and `free_blocks` are as `schedule()` left them, the fields that end in `_end` as the
    step left them. `block_tables` are those of the scheduled requests. `finished` maps request ids
    to their finish reasons. `arrived` and `aborted` happened since the previous step's schedule.
    `graph_bucket` is the size of the CUDA graph that the step replayed, None if it ran eagerly.
    """

    step: int
    arrived: list[str] = field(default_factory=list)
    aborted: list[str] = field(default_factory=list)
    scheduled: dict[str, int] = field(default_factory=dict)
    total: int = 0
    preempted: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    resumed: list[str] = field(default_factory=list)
    running: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    computed: dict[str, int] = field(default_factory=dict)
    cached: dict[str, int] = field(default_factory=dict)
    block_tables: dict[str, list[int]] = field(default_factory=dict)
    free_blocks: int = 0
    sampled: dict[str, int] = field(default_factory=dict)
    finished: dict[str, str] = field(default_factory=dict)
    running_end: list[str] = field(default_factory=list)
    free_blocks_end: int = 0
    graph_bucket: int | None = None
    times: StepTimes | None = None

    def without_times(self) -> StepRecord:
        """The same record with `times` left out: what two runs of one workload must agree on."""
        return dataclasses.replace(self, times=None)


def dump_trace(records: Iterable[StepRecord], config: dict[str, Any], path: Path) -> None:
    """Write a trace as JSON lines: a header with version and config, then a line per step."""
    header = {"trace_version": TRACE_VERSION, "config": config}
    lines = [json.dumps(header)] + [json.dumps(dataclasses.asdict(record)) for record in records]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def load_trace(path: Path) -> tuple[dict[str, Any], list[StepRecord]]:
    """Read what `dump_trace` wrote: (config, records).

    Raises ValueError if the file is no trace or of another version.
    """
    header_line, _, body = path.read_text(encoding="utf-8").partition("\n")
    try:
        header = json.loads(header_line)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is no trace: its first line is not JSON ({error})") from error
    version = header.get("trace_version") if isinstance(header, dict) else None
    if version not in READABLE_VERSIONS:
        known = " or ".join(map(str, READABLE_VERSIONS))
        raise ValueError(f"{path} has trace_version {version!r}, this reader needs {known}")
    return header["config"], [_record(json.loads(line)) for line in body.splitlines() if line]


def _record(fields: dict[str, Any]) -> StepRecord:
    times = fields.pop("times", None)
    return StepRecord(**fields, times=StepTimes(**times) if times else None)
