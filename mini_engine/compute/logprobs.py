"""Owns log probabilities: how likely a token was, of the raw distribution, and what else was."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from mini_engine.interfaces import TokenLogprobs


def token_logprobs(
    logits: Tensor, token_ids: Sequence[int], counts: Sequence[int]
) -> list[TokenLogprobs]:
    """One entry per row of logits [n, vocab_size], for its token, with its `counts` best tokens."""
    logits = logits.float()
    chosen = torch.tensor(token_ids, device=logits.device)[:, None]  # [n, 1]
    log_total = logits.logsumexp(-1, keepdim=True)
    theirs = logits.gather(-1, chosen)
    ranks = (logits > theirs).sum(-1) + 1
    most = min(max(counts), logits.shape[1])
    best, ids = logits.topk(most, dim=-1)
    best = best - log_total
    rows = zip(
        token_ids,
        (theirs - log_total).flatten().tolist(),
        ranks.tolist(),
        ids.tolist(),
        best.tolist(),
        counts,
        strict=True,
    )
    return [
        TokenLogprobs(token, logprob, rank, tuple(zip(top[:count], values[:count], strict=True)))
        for token, logprob, rank, top, values, count in rows
    ]
