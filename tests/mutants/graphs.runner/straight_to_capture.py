# mistake: nothing is run before capture to warm up

import torch

from mini_engine.compute.attention_fixed import FixedWidthAttention
from mini_engine.compute.cuda_graphs import capture, new_graph
from mini_engine.compute.graph_buckets import choose_bucket, graph_buckets
from mini_engine.compute.graph_buffers import StaticBuffers


class GraphRunner:
    def __init__(self, model, kv_cache, config):
        size, most = config.block_size, config.max_num_seqs
        self.model, self.cache, self.bucket = model, kv_cache, None
        self.width = (config.max_model_len + size - 1) // size
        self.buffers = StaticBuffers(most, self.width, config.num_blocks, size, model.device)
        self.attention = FixedWidthAttention(
            model.config, size, most, self.width, model.dtype, model.device
        )
        self.sizes, self.graphs, pool = graph_buckets(most), {}, None
        with torch.inference_mode():
            for rows in sorted(self.sizes, reverse=True):
                views = self.buffers.views(rows)
                graph = new_graph(model.device)
                with capture(graph, pool):
                    result = self.forward(views)
                self.graphs[rows] = graph, result
                if pool is None:
                    pool = graph.pool()

    def forward(self, views):
        plan = self.attention.plan(views)

        def attend(layer, query, key, value):
            self.cache.write(layer, key, value, views.slot_mapping)
            keys, values = self.cache.layer(layer)
            return self.attention(query, keys, values, plan)

        return self.model(views.token_ids, views.positions, attend)

    def run(self, batch):
        self.bucket = None
        requests, width = batch.block_tables.shape
        if len(batch.token_ids) != requests or width > self.width:
            return None
        rows = choose_bucket(self.sizes, requests)
        if rows is None:
            return None
        graph, result = self.graphs[rows]
        with torch.inference_mode():
            self.buffers.fill(batch, rows)
            graph.replay()
        self.bucket = rows
        return result[:requests]
