"""Each size is an object of its own, which knows how to run itself."""

import torch

from mini_engine.compute import cuda_graphs
from mini_engine.compute.attention_fixed import FixedWidthAttention
from mini_engine.compute.graph_buckets import graph_buckets
from mini_engine.compute.graph_buffers import StaticBuffers


class Captured:
    def __init__(self, owner, rows, pool):
        self.owner, self.views = owner, owner.buffers.views(rows)
        device = owner.model.device
        cuda_graphs.warm_up(self, device)
        self.graph = cuda_graphs.new_graph(device)
        with cuda_graphs.capture(self.graph, pool):
            self.hidden = self()

    def __call__(self):
        self.plan = self.owner.attention.plan(self.views)
        return self.owner.model(self.views.token_ids, self.views.positions, self.attend)

    def attend(self, layer, query, key, value):
        cache = self.owner.cache
        cache.write(layer, key, value, self.views.slot_mapping)
        return self.owner.attention(query, *cache.layer(layer), self.plan)


class GraphRunner:
    @torch.inference_mode()
    def __init__(self, model, kv_cache, config):
        self.model, self.cache, self.bucket = model, kv_cache, None
        most, size = config.max_num_seqs, config.block_size
        self.columns = -(-config.max_model_len // size)
        self.buffers = StaticBuffers(most, self.columns, config.num_blocks, size, model.device)
        self.attention = FixedWidthAttention(
            model.config, size, most, self.columns, model.dtype, model.device
        )
        self.captured = {}
        for rows in graph_buckets(most)[::-1]:
            first = next(iter(self.captured.values()), None)
            self.captured[rows] = Captured(self, rows, first and first.graph.pool())

    @torch.inference_mode()
    def run(self, batch):
        count, columns = batch.block_tables.shape
        fitting = [rows for rows in self.captured if rows >= count]
        if batch.token_ids.shape[0] > count or columns > self.columns or not fitting:
            self.bucket = None
            return None
        self.bucket = min(fitting)
        self.buffers.fill(batch, self.bucket)
        self.captured[self.bucket].graph.replay()
        return self.captured[self.bucket].hidden.narrow(0, 0, count)
