"""Looks sizes up in a table of all numbers of requests, and returns copies of the rows."""

import torch

from mini_engine.compute.attention_fixed import FixedWidthAttention
from mini_engine.compute.cuda_graphs import capture, new_graph, warm_up
from mini_engine.compute.graph_buckets import choose_bucket, graph_buckets
from mini_engine.compute.graph_buffers import StaticBuffers


class GraphRunner:
    def __init__(self, model, kv_cache, config):
        self.limit = config.max_model_len + (-config.max_model_len) % config.block_size
        self.block_size, self.bucket = config.block_size, None
        width, most = self.limit // config.block_size, config.max_num_seqs
        device = model.device
        self.buffers = StaticBuffers(most, width, config.num_blocks, config.block_size, device)
        attention = FixedWidthAttention(
            model.config, config.block_size, most, width, model.dtype, device
        )
        sizes = graph_buckets(most)
        self.size_of = [choose_bucket(sizes, n) for n in range(most + 1)]

        def step(batch):
            plan = attention.plan(batch)

            def attend(layer, q, k, v):
                kv_cache.write(layer, k, v, batch.slot_mapping)
                k_blocks, v_blocks = kv_cache.layer(layer)
                return attention(q, k_blocks, v_blocks, plan)

            return model(batch.token_ids, batch.positions, attend)

        self.replays = {}
        with torch.inference_mode():
            views = {size: self.buffers.views(size) for size in sizes}
            for size in reversed(sizes):
                warm_up(lambda size=size: step(views[size]), device)
            shared = None
            for size in reversed(sizes):
                tape = new_graph(device)
                with capture(tape, shared):
                    out = step(views[size])
                shared = shared or tape.pool()
                self.replays[size] = tape.replay, out

    def run(self, batch):
        n = batch.seq_lens.numel()
        one_each = batch.token_ids.numel() == n
        narrow = batch.block_tables.shape[1] * self.block_size <= self.limit
        self.bucket = self.size_of[n] if one_each and narrow and n < len(self.size_of) else None
        if self.bucket is None:
            return None
        with torch.inference_mode():
            self.buffers.fill(batch, self.bucket)
            replay, out = self.replays[self.bucket]
            replay()
            return out[:n].clone()
