"""Owns driving a learner's graph runner without an engine. Runs in the child; knows no answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch

from judge.api import Context
from judge.execute import attempt
from judge.tensor_calls import threads
from judge.tensor_engine import load
from judge.wire import Raised
from mini_engine.compute.batch import build_batch
from mini_engine.compute.graph_emulator import EmulatedGraph
from mini_engine.compute.kv_cache import PagedKVCache
from mini_engine.config import EngineConfig
from mini_engine.control.request import Request
from mini_engine.interfaces import Batch, Chunk

Event = list[Any]


class WatchedModel:
    """The model as a graph runner sees it; notes the rows of every pass."""

    def __init__(self, model: Any, events: list[Event]) -> None:
        self._model, self._events = model, events

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def __call__(self, token_ids: Any, positions: Any, attend: Any) -> Any:
        self._events.append(["forward", len(token_ids)])
        return self._model(token_ids, positions, attend)


@contextmanager
def watched_graphs(kind: Any, events: list[Event]) -> Iterator[None]:
    """Note what happens to all graphs: captures and their pools, and which one is replayed."""
    graphs: list[Any] = []
    begin, end, replay = kind.capture_begin, kind.capture_end, kind.replay

    def capture_begin(graph: Any, *args: Any, **kwargs: Any) -> None:
        pool = args[0] if args else kwargs.get("pool")
        shared = bool(graphs) and pool is not None and pool == graphs[0].pool()
        events.append(["begin", shared])
        graphs.append(graph)
        begin(graph, *args, **kwargs)

    def capture_end(graph: Any) -> None:
        events.append(["end"])
        end(graph)

    def replayed(graph: Any) -> None:
        events.append(["replay"])
        replay(graph)

    watch: dict[str, Any] = {
        "capture_begin": capture_begin,
        "capture_end": capture_end,
        "replay": replayed,
    }
    with mock.patch.multiple(kind, **watch):
        yield


def run(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Make a graph runner and give it step after step.

    payload: {"model_seed", "options": those of EngineConfig, "steps": [[[first block, start,
    number of tokens], ...], ...]}. The answer is {"made": events, "steps": [...]}, or {"made": the
    exception}. A step has "events", "bucket", "hidden" (or what came in its place) and "touched",
    the slots outside the scratch block whose keys changed.
    """
    with threads(1), torch.inference_mode():
        return _run(parts["GraphRunner"], payload, context)


def _run(part: Any, payload: Any, context: Context) -> Any:
    config = EngineConfig(**payload["options"])
    model = load("llama", payload["model_seed"], context.device)
    blocks, size = config.num_blocks or 0, config.block_size
    cache = PagedKVCache(model.config, blocks + 1, size, device=context.device)
    noise = torch.Generator().manual_seed(payload["model_seed"])
    for tensor in (cache.keys, cache.values):
        tensor.copy_(torch.randn(tensor.shape, generator=noise))
    events: list[Event] = []
    kind = torch.cuda.CUDAGraph if context.device == "cuda" else EmulatedGraph
    with watched_graphs(kind, events):
        runner = attempt(part, WatchedModel(model, events), cache, config)
        if isinstance(runner, Raised):
            return {"made": runner}
        made = list(events)
        steps = []
        for step in payload["steps"]:
            events.clear()
            before = cache.keys[:, :blocks].clone()
            hidden = attempt(runner.run, _batch(step, size))
            changed = (cache.keys[:, :blocks] != before).flatten(3).any(3).any(0).flatten()
            steps.append(
                {
                    "events": list(events),
                    "bucket": getattr(runner, "bucket", "no attribute"),
                    "hidden": hidden.clone() if isinstance(hidden, torch.Tensor) else hidden,
                    "touched": changed.nonzero().flatten().tolist(),
                }
            )
    return {"made": made, "steps": steps}


def _batch(step: Sequence[Sequence[int]], block_size: int) -> Batch:
    chunks = []
    for number, (first, start, count) in enumerate(step):
        length = start + count
        request = Request(str(number), [(7 * first + 3 * i) % 500 + 1 for i in range(length)])
        request.block_table = list(range(first, first - (-length // block_size)))
        chunks.append(Chunk(request, start, count, True))
    return build_batch(chunks, block_size)
