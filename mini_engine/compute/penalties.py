"""Owns what changes logits before a token is chosen: bias, minimum length, penalties.

Order as in vLLM: bias, then minimum length, then the repetition, frequency and presence penalty.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import torch
from torch import Tensor

from mini_engine.control.request import Request


def adjusts(request: Request) -> bool:
    """Whether the request's next logits have to be changed at all."""
    params = request.params
    too_short = len(request.output_token_ids) < params.min_tokens
    return bool(params.logit_bias) or params.has_penalties or too_short


def adjust(logits: Tensor, requests: Sequence[Request]) -> None:
    """Change logits [n, vocab_size] in place, one row per request."""
    _add_biases(logits, requests)
    _forbid_ends(logits, requests)
    _penalize(logits, requests)


def _add_biases(logits: Tensor, requests: Sequence[Request]) -> None:
    entries = [
        (row, *item) for row, r in enumerate(requests) for item in r.params.logit_bias.items()
    ]
    if entries:
        rows, tokens, biases = zip(*entries, strict=True)
        logits[list(rows), list(tokens)] += logits.new_tensor(biases)


def _forbid_ends(logits: Tensor, requests: Sequence[Request]) -> None:
    """Before `min_tokens` no token may be chosen that would end the request."""
    entries = [
        (row, token)
        for row, r in enumerate(requests)
        if len(r.output_token_ids) < r.params.min_tokens
        for token in r.end_token_ids
        if token < logits.shape[1]
    ]
    if entries:
        rows, tokens = zip(*entries, strict=True)
        logits[list(rows), list(tokens)] = -torch.inf


def _penalize(logits: Tensor, requests: Sequence[Request]) -> None:
    """Only entries of tokens that occurred are touched: few, beside a whole vocabulary."""
    if not any(r.params.has_penalties for r in requests):
        return
    repetition, frequency, presence = (
        logits.new_tensor([getattr(r.params, f"{name}_penalty") for r in requests])
        for name in ("repetition", "frequency", "presence")
    )
    vocab_size, flat = logits.shape[1], logits.view(-1)
    seen = _places(logits, [r.token_ids for r in requests]).unique()  # in prompt or output
    values, factor = flat[seen], repetition[seen // vocab_size]
    flat[seen] = torch.where(values > 0, values / factor, values * factor)
    outputs, counts = _places(logits, [r.output_token_ids for r in requests]).unique(
        return_counts=True
    )
    rows = outputs // vocab_size
    flat[outputs] -= frequency[rows] * counts + presence[rows]


def _places(logits: Tensor, token_ids: Sequence[Sequence[int]]) -> Tensor:
    """Where each row's tokens stand in the logits as one long row; as often as they occur."""
    tokens = torch.tensor(list(chain.from_iterable(token_ids)), dtype=torch.int64)
    lengths = torch.tensor([len(ids) for ids in token_ids])
    rows = torch.arange(len(token_ids)).repeat_interleave(lengths)
    return (rows * logits.shape[1] + tokens).to(logits.device)
