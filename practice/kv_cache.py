"""Exercises of chapter 01: the model's rotary positions, attention over a KV cache, the cached loop.

Write between the two marks of an exercise; helpers of your own may stand there too. Everything else
in this file stays as it is. Grade with

    python practice/judge.py kv-cache.rope
    python practice/judge.py kv-cache.attention
    python practice/judge.py kv-cache.generate
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from mini_engine.compute.attention_single import (
    attention_over_contiguous as reference_attention,
)
from mini_engine.compute.model import Model
from mini_engine.interfaces import ExerciseNotStarted

__all__ = [
    "apply_rope", "attention_over_contiguous", "generate_cached", "reference_attention", "torch",
]  # fmt: skip

# --- kv-cache.rope: edit from here ---


def apply_rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each head's pairs of numbers by the angle of their token's position.

    Shapes
        x         [num_tokens, heads, head_dim], queries or keys; head_dim is even
        cos, sin  [num_tokens, head_dim / 2], of the angle of each token and pair
        result    x's shape and dtype

    Number i of a head and number i + head_dim / 2 are pair i (the two halves of the head, not
    neighbours). Turning the pair (a, b) by an angle gives
    (a * cos - b * sin, b * cos + a * sin); all heads of a token turn by the same angles.

    Example: head_dim 4, cos 0 and sin 1 (a quarter turn): [1, 2, 3, 4] becomes [-3, -4, 1, 2].

    The arguments are not changed. x need not be contiguous in memory.
    """
    raise ExerciseNotStarted("apply_rope")


# --- end of kv-cache.rope ---

# --- kv-cache.attention: edit from here ---


def attention_over_contiguous(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """Causal attention of one request whose keys and values lie in order.

    Shapes
        query       [n, num_heads, head_dim], of the *last* n of the L positions
        key, value  [L, num_kv_heads, head_dim], of all L positions: those kept and the n new ones
        result      query's shape and dtype

    Query i stands at position L - n + i and sees the positions up to its own. Its weights over them
    are the softmax of scale * (query . key); the result is the sum of the values by these weights.
    num_heads is a multiple of num_kv_heads: query head h reads KV head
    h // (num_heads // num_kv_heads).

    The arguments are not changed. They need not be contiguous in memory. Scores can be large: exp of
    a score alone may overflow. Raises ValueError if n > L.
    """
    raise ExerciseNotStarted("attention_over_contiguous")


# --- end of kv-cache.attention ---

# --- kv-cache.generate: edit from here ---


def generate_cached(
    model: Model, prompt_ids: Sequence[int], max_tokens: int, end_token_ids: Collection[int] = ()
) -> list[int]:
    """Generate greedily for one request and compute every token once.

    The model keeps nothing itself. What it offers:
        model.config          num_layers, num_kv_heads, head_dim, ... (mini_engine/config.py)
        model.dtype, .device  of its weights: the cache must have the same
        model(token_ids, positions, attend) -> hidden [n, hidden_size]
            token_ids and positions are int64 tensors [n]: the tokens to compute now, and where in
            the text each stands, counted from 0. In each layer the model calls
            attend(layer, query, key, value) with those n tokens' query [n, num_heads, head_dim],
            key and value [n, num_kv_heads, head_dim]; attend keeps key and value and returns
            attention over everything kept so far, in query's shape. The scale is head_dim ** -0.5.
        model.logits(hidden[rows]) -> scores [rows, vocab_size]; the next token is the argmax of the
            last token's row.

    For attention call your own attention_over_contiguous, or `reference_attention`, which does the same.

    Returns the new tokens as a list of ints, without the prompt. It ends after `max_tokens` tokens
    (1 or more), or with the first *new* token that is one of `end_token_ids`, which is kept in the
    list. The last token returned is never computed: nothing would read its keys and values.
    Two calls have nothing to do with each other, also with different models.
    """
    raise ExerciseNotStarted("generate_cached")


# --- end of kv-cache.generate ---
