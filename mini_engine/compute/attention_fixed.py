"""Owns attention of fixed shape: decodes whose lengths are numbers on the GPU, not in Python.

A graph repeats what Python chose at capture, so nothing here may depend on a length: every request
is gathered at the full width of its block table, and a mask, computed from `seq_lens` inside the
graph, hides what lies beyond. That reads more memory than the requests need; it is the price of a
graph without a kernel that walks through block tables by itself.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mini_engine.compute.attention import DecodeGroup, attend_group
from mini_engine.config import ModelConfig
from mini_engine.interfaces import Batch


class FixedWidthAttention:
    """interfaces.Attention for batches with one token per request and block tables of `width`.

    Unlike there, `plan` takes the batch on the device and belongs into the graph. At most
    `most_rows` requests; the memory for the gathered blocks, 2 * most_rows * width blocks, is taken
    once and used by all layers and graphs.
    """

    def __init__(
        self,
        config: ModelConfig,
        block_size: int,
        most_rows: int,
        width: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.scale = config.head_dim**-0.5
        self.dtype = dtype
        shape = (most_rows * width, block_size, config.num_kv_heads, config.head_dim)
        self._scratch = (
            torch.zeros(shape, dtype=dtype, device=device),
            torch.zeros(shape, dtype=dtype, device=device),
        )
        self._positions = torch.arange(width * block_size, device=device)

    def plan(self, batch: Batch) -> DecodeGroup:
        """What all layers share: the blocks to gather, and 0 or -inf for each gathered position."""
        unseen = self._positions >= batch.seq_lens[:, None]  # [num_requests, width * block_size]
        mask = torch.zeros(unseen.shape, dtype=self.dtype, device=unseen.device)
        mask = mask.masked_fill_(unseen, -torch.inf)[:, None, None]
        blocks = batch.block_tables.flatten()
        return DecodeGroup(batch.query_starts[:-1], blocks, len(self._positions), mask)

    def __call__(self, query: Tensor, keys: Tensor, values: Tensor, plan: DecodeGroup) -> Tensor:
        """query [num_requests, num_heads, head_dim]; keys, values as `KVCache.layer` gives them."""
        return attend_group(query, keys, values, plan, self._scratch, self.scale)
