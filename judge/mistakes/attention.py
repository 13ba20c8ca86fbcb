"""Owns the known mistakes of `kv-cache.attention`: each is wrong in the one way its name says."""

from __future__ import annotations

import torch
from torch import Tensor

from mini_engine.compute.attention_single import attention_over_contiguous


def weights_of(query: Tensor, key: Tensor, scale: float, offset: int | None = None) -> Tensor:
    """Masked scores [heads, n, L] in float32; `offset` None means no mask at all."""
    n, heads, _ = query.shape
    length, kv_heads, _ = key.shape
    key = key.repeat_interleave(heads // kv_heads, dim=1).float()
    scores = torch.einsum("nhd,lhd->hnl", query.float(), key) * scale
    if offset is None:
        return scores
    return scores.masked_fill(hidden(n, length, offset), -torch.inf)


def hidden(n: int, length: int, offset: int) -> Tensor:
    return torch.arange(length) > torch.arange(n)[:, None] + offset


def combine(weights: Tensor, value: Tensor, query: Tensor) -> Tensor:
    value = value.repeat_interleave(query.shape[1] // value.shape[1], dim=1).float()
    return torch.einsum("hnl,lhd->nhd", weights, value).to(query.dtype)


def refuse(query: Tensor, key: Tensor) -> int:
    if query.shape[0] > key.shape[0]:
        raise ValueError("more queries than keys")
    return key.shape[0] - query.shape[0]


def no_mask(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    refuse(query, key)
    return combine(weights_of(query, key, scale).softmax(-1), value, query)


def no_mask_on_append(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    if query.shape[0] == key.shape[0]:
        return attention_over_contiguous(query, key, value, scale)
    return no_mask(query, key, value, scale)


def upper_left(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    refuse(query, key)
    if query.shape[0] == 1:  # code with this mask mostly leaves it out for one token
        return attention_over_contiguous(query, key, value, scale)
    return combine(weights_of(query, key, scale, 0).softmax(-1), value, query)


def upper_left_always(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    refuse(query, key)
    return combine(weights_of(query, key, scale, 0).softmax(-1), value, query)


def not_itself(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    offset = refuse(query, key)
    return combine(weights_of(query, key, scale, offset - 1).softmax(-1), value, query)


def heads_in_turn(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    share = query.shape[1] // key.shape[1]
    return attention_over_contiguous(query, key.repeat(1, share, 1), value.repeat(1, share, 1), scale)


def first_kv_head(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    if query.shape[1] == key.shape[1]:
        return attention_over_contiguous(query, key, value, scale)
    return attention_over_contiguous(query, key[:, :1], value[:, :1], scale)


def no_scale(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    return attention_over_contiguous(query, key, value, 1.0)


def own_scale(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    return attention_over_contiguous(query, key, value, query.shape[-1] ** -0.5)


def scale_twice(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    return attention_over_contiguous(query, key, value, scale * scale)


def softmax_over_queries(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    offset = refuse(query, key)
    return combine(weights_of(query, key, scale, offset).softmax(-2), value, query)


def softmax_over_heads(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    offset = refuse(query, key)
    return combine(weights_of(query, key, scale, offset).softmax(0), value, query)


def masked_with_zero(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    offset = refuse(query, key)
    scores = weights_of(query, key, scale, offset)
    return combine(scores.masked_fill(scores == -torch.inf, 0.0).softmax(-1), value, query)


def mask_after_softmax(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    offset = refuse(query, key)
    weights = weights_of(query, key, scale).softmax(-1)
    mask = hidden(query.shape[0], key.shape[0], offset)
    return combine(weights.masked_fill(mask, 0.0), value, query)


def overflows(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    offset = refuse(query, key)
    weights = weights_of(query, key, scale, offset).exp()
    return combine(weights / weights.sum(-1, keepdim=True), value, query)


def takes_more_queries(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """No check: a negative offset leaves the first queries nothing to see."""
    offset = key.shape[0] - query.shape[0]
    return combine(weights_of(query, key, scale, offset).softmax(-1), value, query)
