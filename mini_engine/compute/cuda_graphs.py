"""Owns the graph runner: decode steps captured once per batch size and replayed afterwards.

A decode step of a small model is hundreds of short kernels, and launching them from Python takes
longer than running them. A graph launches them all at once. Compare `CudaGraphManager` of vLLM's
model runner and SGLang's `model_executor/runner`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from mini_engine.compute.attention_fixed import FixedWidthAttention
from mini_engine.compute.forward import forward
from mini_engine.compute.graph_buckets import choose_bucket, graph_buckets
from mini_engine.compute.graph_buffers import StaticBuffers
from mini_engine.compute.graph_emulator import EmulatedGraph
from mini_engine.compute.model import Model
from mini_engine.config import EngineConfig
from mini_engine.interfaces import Batch, Graph, KVCache

WARM_UPS = 2


def new_graph(device: torch.device) -> Graph:
    """A CUDA graph on a GPU; on a CPU the emulator, which follows the same rules."""
    return torch.cuda.CUDAGraph() if device.type == "cuda" else EmulatedGraph()


@contextmanager
def capture(graph: Graph, pool: Any = None) -> Iterator[None]:
    """Record what the block runs into `graph`; with a `pool`, in memory shared with other graphs.

    On CUDA that is `torch.cuda.graph`: the block runs on a stream of its own.
    """
    if isinstance(graph, torch.cuda.CUDAGraph):
        with torch.cuda.graph(graph, pool=pool):
            yield
        return
    graph.capture_begin(pool)
    try:
        yield
    finally:
        graph.capture_end()


def warm_up(forward: Callable[[], object], device: torch.device) -> None:
    """Run a step for real before it is captured.

    The first calls make handles and work spaces, choose algorithms and load kernels, which all
    either fail during capture or would be recorded with it. On CUDA they run on a side stream, as
    PyTorch's notes on CUDA graphs ask for.
    """
    if device.type != "cuda":
        forward()
        return
    stream = torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        for _ in range(WARM_UPS):
            forward()
    torch.cuda.current_stream(device).wait_stream(stream)


class GraphRunner:
    """Captures a decode step for every bucket when it is made; see interfaces.GraphRunner.

    Sampling stays outside: it differs by request and brings numbers to the CPU. The attention slot
    isn't used here, a graph needs one of fixed shape.
    """

    def __init__(
        self,
        model: Model,
        kv_cache: KVCache,
        config: EngineConfig,
        *,
        buffers: Callable[..., StaticBuffers] = StaticBuffers,
    ) -> None:
        assert config.num_blocks is not None
        assert config.max_model_len is not None
        self.model, self.kv_cache, self.device = model, kv_cache, model.device
        self.buckets = graph_buckets(config.max_num_seqs)
        self.bucket: int | None = None
        most, block_size = self.buckets[-1], config.block_size
        # A step computes at most max_model_len tokens of a request, those of its last block
        # included: rounding down here would lose the longest requests' last tokens.
        self.width = -(-config.max_model_len // block_size)
        self.buffers = buffers(most, self.width, config.num_blocks, block_size, self.device)
        self.attention = FixedWidthAttention(
            model.config, block_size, most, self.width, model.dtype, self.device
        )
        self.graphs: dict[int, Graph] = {}
        self._hidden: dict[int, Tensor] = {}
        self._capture()

    @torch.inference_mode()
    def _capture(self) -> None:
        """From large to small, in one pool: the small ones find room in what the large ones took.

        The buffers hold padding only, so the steps that run here write to the scratch block.
        """
        pool = None
        for bucket in reversed(self.buckets):
            batch = self.buffers.views(bucket)
            warm_up(lambda batch=batch: self._forward(batch), self.device)  # type: ignore[misc]
            graph = new_graph(self.device)
            with capture(graph, pool):
                self._hidden[bucket] = self._forward(batch)
            self.graphs[bucket] = graph
            pool = pool or graph.pool()

    def _forward(self, batch: Batch) -> Tensor:
        """What is captured: a decode step over static buffers, without a look at their contents."""
        plan = self.attention.plan(batch)
        return forward(self.model, self.kv_cache, self.attention, batch, plan)

    @torch.inference_mode()
    def run(self, batch: Batch) -> Tensor | None:
        """Replay the smallest graph that holds the batch; None if there is none.

        The hidden states lie in the graph's memory: the next replay overwrites them.
        """
        num_requests, width = batch.block_tables.shape
        self.bucket = None
        if len(batch.token_ids) == num_requests and width <= self.width:
            self.bucket = choose_bucket(self.buckets, num_requests)
        if self.bucket is None:
            return None
        self.buffers.fill(batch, self.bucket)
        self.graphs[self.bucket].replay()
        return self._hidden[self.bucket][:num_requests]
