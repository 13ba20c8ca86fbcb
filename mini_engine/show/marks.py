"""Owns what each request did in each step, read from a trace; every figure starts from this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from mini_engine.trace import StepRecord

Kind = Literal["prefill", "decode", "recompute", "preempted", "holds", "waiting", "aborted"]


@dataclass(frozen=True)
class Mark:
    """What one request did in one step.

    `tokens` were computed; `hit` is its prefix hit if it was admitted in this step; `ends` is the
    finish reason if it ended in it. "holds" keeps its blocks while the budget went to others.
    """

    kind: Kind
    tokens: int = 0
    hit: int = 0
    ends: str | None = None


@dataclass
class _Progress:
    decoding: set[str] = field(default_factory=set)  # sampled since they were last admitted
    again: set[str] = field(default_factory=set)  # preempted, and not sampled since


def request_ids(records: Sequence[StepRecord]) -> list[str]:
    """All requests of a trace in order of arrival."""
    seen: dict[str, None] = {}
    for record in records:
        for group in (record.arrived, record.aborted, record.running, record.waiting):
            seen.update(dict.fromkeys(group))
        seen.update(dict.fromkeys(record.scheduled))
    return list(seen)


def marks(records: Sequence[StepRecord]) -> dict[str, list[Mark | None]]:
    """Per request one entry per record; None where it has not arrived or has ended.

    The last chunk of a prompt counts as prefill, also where it has one token.
    """
    ids = request_ids(records)
    found: dict[str, list[Mark | None]] = {request_id: [] for request_id in ids}
    progress = _Progress()
    for record in records:
        for request_id in ids:
            found[request_id].append(_mark(record, request_id, progress))
    return found


def _mark(record: StepRecord, request_id: str, progress: _Progress) -> Mark | None:
    if request_id in record.preempted:
        progress.decoding.discard(request_id)
        progress.again.add(request_id)
        return Mark("preempted")
    if request_id in record.scheduled:
        kind: Kind = "prefill"
        if request_id in progress.decoding:
            kind = "decode"
        elif request_id in progress.again:
            kind = "recompute"
        if request_id in record.sampled:
            progress.decoding.add(request_id)
            progress.again.discard(request_id)
        return Mark(
            kind,
            record.scheduled[request_id],
            record.cached.get(request_id, 0),
            record.finished.get(request_id),
        )
    if request_id in record.aborted:
        return Mark("aborted")
    if request_id in record.running:
        return Mark("holds")
    return Mark("waiting") if request_id in record.waiting else None
