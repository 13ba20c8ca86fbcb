"""Owns sampling in its plainest form: every stage over whole rows of the whole vocabulary.

The engine's own `Sampler` draws the same tokens with less work: it sorts only the best few tokens,
makes noise only for those that a filter has left, and penalizes only the tokens that occurred.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from mini_engine.compute.noise import draw_keys, gumbel
from mini_engine.control.request import Request

# (logits, temperature, min_p, top_k, top_p) -> logits
FilterLogits = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


def filter_logits(
    logits: Tensor, temperature: Tensor, min_p: Tensor, top_k: Tensor, top_p: Tensor
) -> Tensor:
    """Divide by the temperature, then leave only what min-p, top-k and top-p keep.

    logits [n, vocab_size]; the others [n], one number per row: temperature above 0, min_p from 0
    to 1, top_k int64 (0 or less: off), top_p above 0 up to 1. Returns a new float32 tensor, -inf
    where a token is dropped. min-p and top-k come first, and top-p counts the shares of what they
    left. The best token always survives; tokens with equal logits survive together.
    """
    # The best becomes 0: even the smallest temperature then divides without overflow.
    logits = logits.float()
    scaled = (logits - logits.amax(-1, keepdim=True)) / temperature[:, None]
    best = scaled.sort(dim=-1, descending=True).values
    shares = best.softmax(-1)
    rank = torch.arange(best.shape[1], device=best.device)
    most = torch.where(top_k > 0, top_k, best.shape[1])[:, None]
    kept = (shares >= min_p[:, None] * shares[:, :1]) & (rank < most)
    left = shares * kept
    better = left.cumsum(-1) - left  # what all better tokens have together
    enough = top_p[:, None] * left.sum(-1, keepdim=True)
    kept &= (better < enough) | (top_p[:, None] == 1)  # rounded sums reach 1 before the end
    lowest = best.masked_fill(~kept, torch.inf).amin(-1, keepdim=True)
    return scaled.masked_fill(scaled < lowest, -torch.inf)


def sample(
    logits: Tensor, requests: Sequence[Request], *, keep: FilterLogits = filter_logits
) -> list[int]:
    """One token per row: the best of a greedy request, a draw for any other.

    logits [n, vocab_size], a row per request, after bias and penalties; they are not changed. A
    draw is the largest of filtered logit and Gumbel noise; the noise depends on the request's seed,
    choice and output number, and on the token, so no other row has a part in it.
    """
    tokens = logits.argmax(-1)  # of equal maxima the first
    drawn = [row for row, request in enumerate(requests) if not request.params.greedy]
    if drawn:
        some, device = [requests[row] for row in drawn], logits.device
        numbers = (
            torch.tensor([getattr(r.params, name) for r in some], dtype=dtype, device=device)
            for name, dtype in (
                ("temperature", torch.float32),
                ("min_p", torch.float32),
                ("top_k", torch.int64),
                ("top_p", torch.float32),
            )
        )
        kept = keep(logits[drawn], *numbers)
        token_ids = torch.arange(logits.shape[1], device=device)[None]
        tokens[drawn] = (kept + gumbel(draw_keys(some, device), token_ids)).argmax(-1)
    return tokens.tolist()


def apply_penalties(
    logits: Tensor,
    prompts: Sequence[Sequence[int]],
    outputs: Sequence[Sequence[int]],
    repetition: Tensor,
    frequency: Tensor,
    presence: Tensor,
) -> Tensor:
    """The logits of tokens that a request has used already, made smaller (or larger).

    logits [n, vocab_size]; prompts and outputs hold each row's tokens; the three penalties are [n].
    In this order: repetition divides positive logits and multiplies others, of every token in
    prompt or output; frequency, times the token's count, and presence, once, are taken from those
    in the output. Returns a new float32 tensor.
    """
    asked, given = (_counts(rows, logits) for rows in (prompts, outputs))
    logits, factor = logits.float(), repetition[:, None]
    repeated = torch.where(logits > 0, logits / factor, logits * factor)
    logits = torch.where(asked + given > 0, repeated, logits)
    return logits - frequency[:, None] * given - presence[:, None] * (given > 0)


def _counts(rows: Sequence[Sequence[int]], logits: Tensor) -> Tensor:
    """How often each token occurs in each row: int64, in the logits' shape."""
    size = logits.shape[1]
    counted = [torch.bincount(torch.tensor(row).long(), minlength=size) for row in rows]
    return torch.stack(counted).to(logits.device) if counted else logits.new_zeros(0, size).long()
