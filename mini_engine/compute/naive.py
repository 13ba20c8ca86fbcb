"""Owns the two simplest generate loops: one that recomputes everything, one that keeps K and V.

Both serve one request, choose greedily, and end after `max_tokens` tokens or on one of
`end_token_ids`, which is kept. They give the same tokens; only the time differs. The engine is what
becomes of the second one when many requests share the machine.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from mini_engine.compute.attention import attention_over_contiguous
from mini_engine.compute.model import Model


@torch.inference_mode()
def generate_naive(
    model: Model, prompt_ids: Sequence[int], max_tokens: int, end_token_ids: Collection[int] = ()
) -> list[int]:
    """Compute the whole text again for each new token; n tokens cost n^2 token computations."""
    scale = model.config.head_dim**-0.5

    def attend(layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return attention_over_contiguous(query, key, value, scale)  # nothing is kept

    text = list(prompt_ids)
    while True:
        token_ids = torch.tensor(text, device=model.device)
        positions = torch.arange(len(text), device=model.device)
        hidden = model(token_ids, positions, attend)  # [all tokens, hidden_size]
        text.append(int(model.logits(hidden[-1:]).argmax()))
        outputs = text[len(prompt_ids) :]
        if len(outputs) == max_tokens or outputs[-1] in end_token_ids:
            return outputs


@torch.inference_mode()
def generate_cached(
    model: Model, prompt_ids: Sequence[int], max_tokens: int, end_token_ids: Collection[int] = ()
) -> list[int]:
    """Keep the keys and values of every token, so that each token is computed once.

    They can be kept because a token's keys and values depend on the tokens before it and on its own
    position, and never on what comes later: attention is causal.
    """
    config = model.config
    # The last sampled token is never computed, so it needs no place.
    capacity = len(prompt_ids) + max_tokens - 1
    shape = (config.num_layers, capacity, config.num_kv_heads, config.head_dim)
    keys = torch.zeros(shape, dtype=model.dtype, device=model.device)
    values = torch.zeros(shape, dtype=model.dtype, device=model.device)
    num_computed = 0
    new_tokens = list(prompt_ids)  # first the whole prompt, then one token at a time
    outputs: list[int] = []

    def attend(layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        end = num_computed + len(key)
        keys[layer, num_computed:end] = key  # write first: a token attends to itself, too
        values[layer, num_computed:end] = value
        scale = config.head_dim**-0.5
        return attention_over_contiguous(query, keys[layer, :end], values[layer, :end], scale)

    while True:
        token_ids = torch.tensor(new_tokens, device=model.device)
        positions = torch.arange(num_computed, num_computed + len(new_tokens), device=model.device)
        hidden = model(token_ids, positions, attend)  # [new tokens, hidden_size]
        num_computed += len(new_tokens)
        new_tokens = [int(model.logits(hidden[-1:]).argmax())]
        outputs += new_tokens
        if len(outputs) == max_tokens or outputs[-1] in end_token_ids:
            return outputs
