"""Owns min-p, top-k and top-p: which tokens a random draw may choose from.

Sorting a whole vocabulary costs more than the rest of sampling together, so only the best few are
sorted, and more of them for the few rows that need more. Compare `apply_top_k_top_p` in vLLM's
`vllm/v1/sample/ops/topk_topp_sampler.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mini_engine.sampling_params import SamplingParams

HEAD = 128  # how many tokens are sorted at first
WIDEN = 16  # and how many times as many where those are too few
BUCKET = 32  # tokens whose largest logit says whether they need a look


@dataclass(frozen=True)
class Filters:
    """One number per row: float32 or int64 [n]. Off is min_p 0, top_p 1, top_k vocab_size."""

    min_p: Tensor
    top_k: Tensor
    top_p: Tensor
    vocab_size: int

    @classmethod
    def of(cls, params: Sequence[SamplingParams], vocab_size: int, device: torch.device) -> Filters:
        """The filters of these requests, one row each."""
        top_k = [p.top_k if 0 < p.top_k < vocab_size else vocab_size for p in params]
        return cls(
            torch.tensor([p.min_p for p in params], device=device),
            torch.tensor(top_k, device=device),
            torch.tensor([p.top_p for p in params], device=device),
            vocab_size,
        )

    @property
    def active(self) -> Tensor:
        """Which rows have any filter: bool [n]."""
        return (self.min_p > 0) | (self.top_k < self.vocab_size) | (self.top_p < 1)

    def rows(self, index: Tensor) -> Filters:
        """Those of some rows."""
        return Filters(self.min_p[index], self.top_k[index], self.top_p[index], self.vocab_size)


def first_best(logits: Tensor) -> Tensor:
    """The best token of each row, of equals the one with the lowest id: `logits.argmax(-1)`."""
    rows, vocab_size = logits.shape
    if vocab_size % BUCKET:
        return logits.argmax(-1)
    buckets = logits.reshape(rows, -1, BUCKET)  # `argmax` gives the first of equals, but is slow
    bucket = buckets.amax(-1).argmax(-1)
    return bucket * BUCKET + buckets[torch.arange(rows, device=logits.device), bucket].argmax(-1)


def best_tokens(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` best of each row, falling, and their ids: `logits.topk(count)`, only faster.

    The best tokens lie in the buckets whose maxima are best, and maxima are cheap.
    """
    rows, vocab_size = logits.shape
    if vocab_size % BUCKET or vocab_size < 4 * BUCKET * count:
        return torch.topk(logits, count, dim=-1)
    buckets = logits.reshape(rows, -1, BUCKET)
    chosen = buckets.amax(-1).topk(count, dim=-1).indices[:, :, None]
    some = buckets.gather(1, chosen.expand(-1, -1, BUCKET)).flatten(1)
    best, places = some.topk(count, dim=-1)
    ids = (chosen * BUCKET + torch.arange(BUCKET, device=logits.device)).flatten(1)
    return best, ids.gather(-1, places)


def lowest_kept(logits: Tensor, filters: Filters, best: Tensor) -> tuple[Tensor, Tensor]:
    """The smallest logit that each row's filters keep, [n], and the rows that may keep more.

    logits [n, vocab_size], already divided by the temperature; best [n, k], the k best of each row,
    falling. For the rows of the second result, int64 [m], k tokens do not show the smallest.
    The best token always survives. Tokens with equal logits survive together, so the result does
    not depend on their order.
    """
    is_all = best.shape[1] == logits.shape[1]
    # Only top-p asks how likely a token is; for the others it is enough how they compare.
    has_top_p = bool((filters.top_p < 1).any())
    log_total = logits.logsumexp(-1, keepdim=True) if has_top_p else best[:, :1]
    lowest = _lowest_of(best, log_total, filters, is_all=is_all)
    if is_all:
        return lowest, torch.empty(0, dtype=torch.int64, device=logits.device)
    return lowest, (best[:, -1] >= lowest).nonzero().flatten()


def lowest_of_sorted(logits: Tensor, filters: Filters, width: int = WIDEN * HEAD) -> Tensor:
    """The same for all rows, however many tokens they keep: [n]."""
    width = min(width, logits.shape[1])
    lowest, unsure = lowest_kept(logits, filters, logits.topk(width, dim=-1).values)
    if len(unsure):
        lowest[unsure] = lowest_of_sorted(logits[unsure], filters.rows(unsure), WIDEN * width)
    return lowest


def keeps(logits: Tensor, filters: Filters, token_ids: Tensor) -> Tensor:
    """Whether each row's filters surely keep its token: bool [n]; token_ids int64 [n].

    logits [n, vocab_size] as above. Counts the better tokens instead of sorting them. False also
    where top-p follows another filter: how much that one leaves takes a sorted row to know.
    """
    probabilities = logits.softmax(-1)
    better = logits > logits.gather(-1, token_ids[:, None])
    own = probabilities.gather(-1, token_ids[:, None]).squeeze(-1)
    kept = own >= filters.min_p * probabilities.amax(-1)
    kept &= better.sum(-1) < filters.top_k
    alone = (filters.min_p == 0) & (filters.top_k == filters.vocab_size)
    within = alone & (probabilities.mul_(better).sum(-1) < filters.top_p)
    return kept & (within | (filters.top_p == 1))


def _lowest_of(best: Tensor, log_total: Tensor, filters: Filters, *, is_all: bool) -> Tensor:
    """The same as far as `best` shows it: right where it is above the last of them.

    min-p comes first, then top-k; top-p counts the shares of what those two have left.
    """
    probabilities = (best - log_total).exp()  # [n, width]
    rank = torch.arange(best.shape[1], device=best.device)
    kept = probabilities >= filters.min_p[:, None] * probabilities[:, :1]
    kept &= rank < filters.top_k[:, None]
    probabilities = probabilities * kept
    all_left = (filters.min_p == 0) & (filters.top_k == filters.vocab_size)
    total = torch.where(all_left, 1.0, probabilities.sum(-1))[:, None]
    cut_off = kept[:, -1] & ~all_left & (not is_all)  # min-p and top-k keep more: total is unknown
    better = probabilities.cumsum(-1) - probabilities  # what all better tokens have together
    kept &= (better < filters.top_p[:, None] * total) | (filters.top_p[:, None] == 1)
    last = kept.sum(-1, keepdim=True).clamp(min=1) - 1
    return torch.where(cut_off, best[:, -1], best.gather(-1, last).squeeze(-1))
