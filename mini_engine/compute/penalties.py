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
    if not any(r.params.has_penalties for r in requests):
        return
    outputs = _counts(logits, [r.output_token_ids for r in requests])  # [n, vocab_size]
    prompts = _counts(logits, [r.prompt_token_ids for r in requests])
    repetition, frequency, presence = (
        logits.new_tensor([getattr(r.params, f"{name}_penalty") for r in requests])[:, None]
        for name in ("repetition", "frequency", "presence")
    )
    smaller = torch.where(logits > 0, logits / repetition, logits * repetition)
    logits.copy_(torch.where((outputs + prompts) > 0, smaller, logits))
    logits -= frequency * outputs
    logits -= presence * (outputs > 0)


def _counts(logits: Tensor, token_ids: Sequence[Sequence[int]]) -> Tensor:
    """How often each token occurs in each row's ids: like logits."""
    counts = torch.zeros_like(logits)
    flat = torch.tensor(list(chain.from_iterable(token_ids)), dtype=torch.int64)
    lengths = torch.tensor([len(ids) for ids in token_ids])
    rows = torch.arange(len(token_ids)).repeat_interleave(lengths)
    index = (rows.to(logits.device), flat.to(logits.device))
    return counts.index_put_(index, logits.new_ones(()), accumulate=True)
