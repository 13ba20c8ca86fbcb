"""Owns running a workload through the control plane with made-up samples: no model, no torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mini_engine.engine import LLMEngine
from mini_engine.interfaces import Schedule
from mini_engine.outputs import RequestOutput
from mini_engine.sampling_params import SamplingParams


@dataclass
class ScriptedRunner:
    """Samples the next token of each request's script; without one, the number of the output."""

    scripts: dict[str, list[int]] = field(default_factory=dict)
    during: Callable[[], None] | None = None  # called in the middle of each step

    def run(self, schedule: Schedule) -> dict[str, int]:
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


def control_engine(num_blocks: int, block_size: int, **options: Any) -> LLMEngine:
    """An engine without a model that checks all invariants after every step."""
    options.setdefault("max_model_len", 100_000)
    scripts = options.pop("scripts", {})
    return LLMEngine(
        runner=ScriptedRunner(scripts),
        num_blocks=num_blocks,
        block_size=block_size,
        debug=True,
        **options,
    )


def add(engine: LLMEngine, name: str, prompt: Any, max_tokens: int = 1, **options: Any) -> None:
    """Queue a request by name."""
    engine.add_request(list(prompt), SamplingParams(max_tokens), request_id=name, **options)


def run_to_end(engine: LLMEngine, most_steps: int = 10_000) -> dict[str, RequestOutput]:
    """Step until nothing is unfinished; returns the final outputs by request id."""
    final = {}
    for _ in range(most_steps):
        if not engine.has_unfinished:
            return final
        final.update({o.request_id: o for o in engine.step() if o.finished})
    raise AssertionError(f"not done after {most_steps} steps")


def scheduled(engine: LLMEngine) -> list[list[int]]:
    """The tokens of each step's requests, as SEMANTICS writes them: {6,6} is [6, 6]."""
    return [list(record.scheduled.values()) for record in engine.trace]


def free(engine: LLMEngine) -> int:
    """Free blocks now."""
    return engine.cache.pool.num_free


def run_workload(workload: dict[str, Any]) -> tuple[LLMEngine, list[str]]:
    """Run one of the recorded workloads, with its arrivals, aborts and sampled tokens.

    Returns the engine and the ids of the requests that it refused.
    """
    refused: list[str] = []
    requests = workload["requests"]
    engine = LLMEngine(
        runner=ScriptedRunner({r["id"]: r["output"] for r in requests}),
        num_blocks=workload["num_blocks"] - 1,  # vLLM keeps block 0 for itself
        debug=True,
        **{
            name: workload[name]
            for name in (
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
            if name in workload
        },
    )
    for step in range(10_000):
        for request in requests:
            if request["arrival_step"] == step and not _arrive(engine, request):
                refused.append(request["id"])
        for request in requests:
            if request.get("abort_at_step") == step:
                engine.abort(request["id"])
        aborted = [r["id"] for r in requests if r.get("abort_during_step") == step]
        engine.runner.during = lambda names=aborted: [engine.abort(n) for n in names]
        engine.step()
        last = max(r["arrival_step"] for r in requests)
        if step >= last and not engine.has_unfinished:
            return engine, refused
    raise AssertionError("the workload did not end")


def _arrive(engine: LLMEngine, request: dict[str, Any]) -> bool:
    params = SamplingParams(
        max_tokens=request.get("max_tokens", len(request["output"])),
        stop_token_ids=tuple(request.get("stop_token_ids", ())),
    )
    try:
        engine.add_request(
            request["prompt"], params, request_id=request["id"], priority=request.get("priority", 0)
        )
    except ValueError:
        return False
    return True
