"""Owns wrong graph runners: each differs from the reference in one respect."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from mini_engine.compute.cuda_graphs import GraphRunner, capture, new_graph, warm_up
from mini_engine.compute.graph_buckets import choose_bucket
from mini_engine.interfaces import Batch


class _Captures(GraphRunner):
    """The reference, with what happens at capture in pieces that can be replaced."""

    warm, one_pool, large_first = True, True, True

    def sizes(self) -> tuple[int, ...]:
        return self.buckets

    @torch.inference_mode()
    def _capture(self) -> None:
        pool = None
        self.buckets = self.sizes()
        for bucket in reversed(self.buckets) if self.large_first else self.buckets:
            batch = self.buffers.views(bucket)
            if self.warm:
                warm_up(lambda batch=batch: self._forward(batch), self.device)  # type: ignore[misc]
            graph = new_graph(self.device)
            with capture(graph, pool):
                self._hidden[bucket] = self._forward(batch)
            self.graphs[bucket] = graph
            if self.one_pool:
                pool = pool or graph.pool()


class NoWarmUp(_Captures):
    """Captures at once."""

    warm = False


class SmallFirst(_Captures):
    """Captures in the order of the sizes."""

    large_first = False


class OwnPools(_Captures):
    """Gives no pool."""

    one_pool = False


class PowersOfTwo(_Captures):
    """1, 2, 4, ... and nothing beyond the last that fits."""

    def sizes(self) -> tuple[int, ...]:
        return tuple(2**i for i in range(8) if 2**i <= self.buckets[-1])


class AlwaysLargest(GraphRunner):
    """Pads every batch up to max_num_seqs."""

    @torch.inference_mode()
    def run(self, batch: Batch) -> Tensor | None:
        count, width = batch.block_tables.shape
        self.bucket = None
        if len(batch.token_ids) > count or width > self.width or count > self.buckets[-1]:
            return None
        self.bucket = self.buckets[-1]
        self.buffers.fill(batch, self.bucket)
        self.graphs[self.bucket].replay()
        return self._hidden[self.bucket][:count]


class AllRows(GraphRunner):
    """Returns the graph's whole result."""

    def run(self, batch: Batch) -> Tensor | None:
        if super().run(batch) is None:
            return None
        assert self.bucket is not None
        return self._hidden[self.bucket]


class NeverFilled(GraphRunner):
    """Replays what the buffers held at capture."""

    @torch.inference_mode()
    def run(self, batch: Batch) -> Tensor | None:
        count, width = batch.block_tables.shape
        fits = len(batch.token_ids) == count and width <= self.width
        self.bucket = choose_bucket(self.buckets, count) if fits else None
        if self.bucket is None:
            return None
        self.graphs[self.bucket].replay()
        return self._hidden[self.bucket][:count]


class TakesChunks(GraphRunner):
    """Looks at the number of requests only, and takes the first token of each."""

    @torch.inference_mode()
    def run(self, batch: Batch) -> Tensor | None:
        count, width = batch.block_tables.shape
        self.bucket = choose_bucket(self.buckets, count) if width <= self.width else None
        if self.bucket is None:
            return None
        first = batch.query_starts[:-1]
        rows = {name: getattr(batch, name)[first] for name in ("token_ids", "positions")}
        whole = {**vars(batch), **rows, "slot_mapping": batch.slot_mapping[first]}
        self.buffers.fill(Batch(**whole), self.bucket)
        self.graphs[self.bucket].replay()
        return self._hidden[self.bucket][:count]


class Narrow(GraphRunner):
    """Block tables of max_model_len // block_size columns."""

    def __init__(self, model: Any, kv_cache: Any, config: Any) -> None:
        super().__init__(model, kv_cache, config)
        self.width = config.max_model_len // config.block_size


class KeepsBucket(GraphRunner):
    """`bucket` is only ever set."""

    def run(self, batch: Batch) -> Tensor | None:
        before = self.bucket
        hidden = super().run(batch)
        if hidden is None:
            self.bucket = before
        return hidden


class LooksAtLengths(GraphRunner):
    """Asks for the longest length inside the captured function."""

    def _forward(self, batch: Batch) -> Tensor:
        if int(batch.seq_lens.max()) > self.width * self.kv_cache.block_size:
            raise ValueError("too long")
        return super()._forward(batch)


class OneResult(GraphRunner):
    """Cuts the result of the largest graph, which was replayed last only now and then."""

    def run(self, batch: Batch) -> Tensor | None:
        hidden = super().run(batch)
        return None if hidden is None else self._hidden[self.buckets[-1]][: len(batch.seq_lens)]
