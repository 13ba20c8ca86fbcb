"""Owns runs of the scheduler without a model: who asks for what when, and the trace that comes out.

No clock and no torch: what a policy decides can be seen step by step in a moment, and is the same
in every run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mini_engine.engine import LLMEngine
from mini_engine.interfaces import Schedule
from mini_engine.parts import EngineParts, Part
from mini_engine.sampling_params import SamplingParams
from mini_engine.trace import StepRecord

APART = 100_000  # token ids of different requests, so that no prompt begins like another


@dataclass(frozen=True)
class Ask:
    """A request by its sizes, and the step in which it arrives."""

    name: str
    prompt: int
    output: int
    step: int = 0
    priority: int = 0


class _PretendedModel:
    """Samples token 0 for every request that samples."""

    def run(self, schedule: Schedule) -> dict[str, int]:
        return {chunk.request.request_id: 0 for chunk in schedule.chunks if chunk.samples}


def trace_of(
    asks: Sequence[Ask],
    *,
    aborts: Mapping[str, int] | None = None,
    scheduler: Part | None = None,
    **options: Any,
) -> list[StepRecord]:
    """Serve all to their end and return the trace.

    `aborts` maps names to the steps before which they are aborted, `scheduler` replaces the
    reference's, `options` are the engine's. Unless they say otherwise blocks of 4 tokens are
    plenty and no prefix is shared.
    """
    defaults = {"block_size": 4, "num_blocks": 4096, "max_model_len": 4096}
    defaults |= {"enable_prefix_caching": False}
    parts = EngineParts() if scheduler is None else EngineParts(scheduler=scheduler)
    engine = LLMEngine(
        runner=_PretendedModel(), parts=parts, trace_limit=None, **(defaults | options)
    )
    coming = sorted(asks, key=lambda ask: ask.step)
    number = 0
    while coming or engine.has_unfinished:
        while coming and coming[0].step <= number:
            _submit(engine, coming.pop(0), asks)
        for name, step in (aborts or {}).items():
            if step == number:
                engine.abort(name)
        engine.step()
        number += 1
    return engine.trace


def _submit(engine: LLMEngine, ask: Ask, asks: Sequence[Ask]) -> None:
    first = APART * asks.index(ask)
    params = SamplingParams(max_tokens=ask.output, ignore_eos=True)
    engine.add_request(
        range(first, first + ask.prompt), params, request_id=ask.name, priority=ask.priority
    )
