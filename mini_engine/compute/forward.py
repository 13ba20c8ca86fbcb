"""Owns the forward pass over the paged cache, as a step runs it and as a graph records it."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from mini_engine.compute.model import Model
from mini_engine.interfaces import Attention, Batch, KVCache


def forward(
    model: Model, kv_cache: KVCache, attention: Attention, batch: Batch, plan: Any
) -> Tensor:
    """Final hidden states [num_tokens, hidden_size]; K and V of the batch are in the cache then.

    The batch lies on the model's device; `plan` is what `attention.plan` gave for it.
    """

    def attend(layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        # Written before anything attends: tokens of this step see one another, and a request
        # may share blocks that another one fills in this very step.
        kv_cache.write(layer, key, value, batch.slot_mapping)
        keys, values = kv_cache.layer(layer)
        return attention(query, keys, values, plan)

    hidden: Tensor = model(batch.token_ids, batch.positions, attend)
    return hidden
