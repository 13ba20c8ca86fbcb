"""Owns the choice of the next token from the logits."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from mini_engine.control.request import Request


class GreedySampler:
    """The token with the highest logit; among equals the lowest id. See interfaces.Sampler."""

    def __call__(self, logits: Tensor, requests: Sequence[Request]) -> list[int]:
        """logits [num_samples, vocab_size], one row per request; returns one token id per row.

        Raises ValueError, naming the request, if a row holds a NaN: its forward pass went wrong,
        and any token chosen from it would be an accident.
        """
        if logits.shape[0] != len(requests):
            raise ValueError(f"{logits.shape[0]} rows of logits for {len(requests)} requests")
        if not requests:
            return []
        # `max` gives the first of equal maxima, and a NaN where a row holds one.
        best, token_ids = logits.max(dim=-1)
        if torch.isnan(best).any():
            bad = [requests[row].request_id for row in best.isnan().nonzero().flatten().tolist()]
            raise ValueError(
                f"the logits of request {', '.join(map(repr, bad))} hold NaN; "
                "the weights or the KV cache are damaged"
            )
        return token_ids.tolist()
