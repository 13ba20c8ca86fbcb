"""Owns the known mistakes of `sampling.filter`: each is wrong in one way."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from mini_engine.compute.plain_sampler import FilterLogits, filter_logits

INF = torch.inf
Mask = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def divided(logits: Tensor, temperature: Tensor) -> Tensor:
    return (logits - logits.amax(-1, keepdim=True)) / temperature[:, None]


def above(scaled: Tensor, best: Tensor, kept: Tensor) -> Tensor:
    """The logits from the worst kept one upwards; of a row without any, nothing."""
    lowest = best.masked_fill(~kept, INF).amin(-1, keepdim=True)
    return scaled.masked_fill(scaled < lowest, -INF)


def ranks(best: Tensor) -> Tensor:
    return torch.arange(best.shape[1], device=best.device)


def by_min_p(shares: Tensor, min_p: Tensor) -> Tensor:
    return shares >= min_p[:, None] * shares[:, :1]


def by_top_k(shares: Tensor, top_k: Tensor) -> Tensor:
    most = torch.where(top_k > 0, top_k, shares.shape[1])[:, None]
    return ranks(shares) < most


def by_top_p(shares: Tensor, kept: Tensor, top_p: Tensor) -> Tensor:
    left = shares * kept
    enough = top_p[:, None] * left.sum(-1, keepdim=True)
    return kept & ((left.cumsum(-1) - left < enough) | (top_p[:, None] == 1))


def masking(mask: Mask, *, best_stays: bool = True) -> FilterLogits:
    """The right filter with another mask of the sorted shares."""

    def filtered(
        logits: Tensor, temperature: Tensor, min_p: Tensor, top_k: Tensor, top_p: Tensor
    ) -> Tensor:
        scaled = divided(logits, temperature)
        best = scaled.sort(dim=-1, descending=True).values
        kept = mask(best.softmax(-1), min_p, top_k, top_p)
        if best_stays:
            kept = kept | (ranks(best) == 0)
        return above(scaled, best, kept)

    return filtered


def _left(shares: Tensor, min_p: Tensor, top_k: Tensor) -> Tensor:
    return by_min_p(shares, min_p) & by_top_k(shares, top_k)


def _crossing_dropped(shares: Tensor, min_p: Tensor, top_k: Tensor, top_p: Tensor) -> Tensor:
    kept = _left(shares, min_p, top_k)
    left = shares * kept
    enough = top_p[:, None] * left.sum(-1, keepdim=True)
    return kept & ((left.cumsum(-1) <= enough) | (top_p[:, None] == 1))


crossing_dropped = masking(_crossing_dropped)
crossing_dropped_all = masking(_crossing_dropped, best_stays=False)


def _shares_of_all(shares: Tensor, min_p: Tensor, top_k: Tensor, top_p: Tensor) -> Tensor:
    kept = _left(shares, min_p, top_k)
    return by_top_p(shares, torch.ones_like(kept), top_p) & kept


shares_of_all = masking(_shares_of_all)
without_min_p = masking(
    lambda shares, _, top_k, top_p: by_top_p(shares, by_top_k(shares, top_k), top_p)
)
without_top_k = masking(
    lambda shares, min_p, _, top_p: by_top_p(shares, by_min_p(shares, min_p), top_p)
)
without_top_p = masking(lambda shares, min_p, top_k, _: _left(shares, min_p, top_k))
absolute_min_p = masking(
    lambda shares, min_p, top_k, top_p: by_top_p(
        shares, (shares >= min_p[:, None]) & by_top_k(shares, top_k), top_p
    )
)
strict_min_p = masking(
    lambda shares, min_p, top_k, top_p: by_top_p(
        shares, (shares > min_p[:, None] * shares[:, :1]) & by_top_k(shares, top_k), top_p
    ),
    best_stays=False,
)


def shifted_top_k(by: int) -> FilterLogits:
    def mask(shares: Tensor, min_p: Tensor, top_k: Tensor, top_p: Tensor) -> Tensor:
        most = torch.where(top_k > 0, top_k + by, shares.shape[1])[:, None]
        return by_top_p(shares, by_min_p(shares, min_p) & (ranks(shares) < most), top_p)

    return masking(mask)


one_too_many = shifted_top_k(1)
one_too_few = shifted_top_k(-1)


def off_means_none(least: int, *, best_stays: bool) -> FilterLogits:
    """top_k is off only from `least` on downwards."""

    def mask(shares: Tensor, min_p: Tensor, top_k: Tensor, top_p: Tensor) -> Tensor:
        off = (top_k < 0) if least < 0 else (top_k == 0)
        most = torch.where(off, shares.shape[1], top_k)[:, None]
        return by_top_p(shares, by_min_p(shares, min_p) & (ranks(shares) < most), top_p)

    return masking(mask, best_stays=best_stays)


zero_is_not_off = off_means_none(-1, best_stays=True)
zero_keeps_nothing = off_means_none(-1, best_stays=False)
minus_one_is_not_off = off_means_none(0, best_stays=True)
minus_one_keeps_nothing = off_means_none(0, best_stays=False)


def _rounded(shares: Tensor, min_p: Tensor, top_k: Tensor, top_p: Tensor) -> Tensor:
    kept = _left(shares, min_p, top_k)
    left = shares * kept
    enough = top_p[:, None] * left.sum(-1, keepdim=True)
    return kept & (left.cumsum(-1) - left < enough)


def _rounded_to_one(shares: Tensor, min_p: Tensor, top_k: Tensor, top_p: Tensor) -> Tensor:
    kept = _left(shares, min_p, top_k)
    left = shares * kept
    left = left / left.sum(-1, keepdim=True)
    return kept & (left.cumsum(-1) - left < top_p[:, None])


rounded_at_one = masking(_rounded)
rounded_to_one = masking(_rounded_to_one)


def _from_the_worst(shares: Tensor, min_p: Tensor, top_k: Tensor, top_p: Tensor) -> Tensor:
    kept = _left(shares, min_p, top_k)
    left = shares * kept
    behind = left.flip(-1).cumsum(-1).flip(-1) - left
    enough = top_p[:, None] * left.sum(-1, keepdim=True)
    return kept & ((behind < enough) | (top_p[:, None] == 1))


def from_the_worst(
    logits: Tensor, temperature: Tensor, min_p: Tensor, top_k: Tensor, top_p: Tensor
) -> Tensor:
    scaled = divided(logits, temperature)
    best, ids = scaled.sort(dim=-1, descending=True)
    kept = _from_the_worst(best.softmax(-1), min_p, top_k, top_p)
    return scaled.masked_fill(~torch.zeros_like(kept).scatter(-1, ids, kept), -INF)


def temperature_last(
    logits: Tensor, temperature: Tensor, min_p: Tensor, top_k: Tensor, top_p: Tensor
) -> Tensor:
    ones = torch.ones_like(temperature)
    return filter_logits(logits, ones, min_p, top_k, top_p) / temperature[:, None]


def no_temperature(
    logits: Tensor, temperature: Tensor, min_p: Tensor, top_k: Tensor, top_p: Tensor
) -> Tensor:
    return filter_logits(logits, torch.ones_like(temperature), min_p, top_k, top_p)


def times_temperature(
    logits: Tensor, temperature: Tensor, min_p: Tensor, top_k: Tensor, top_p: Tensor
) -> Tensor:
    return filter_logits(logits, 1 / temperature, min_p, top_k, top_p)


def divides_only_to_filter(
    logits: Tensor, temperature: Tensor, min_p: Tensor, top_k: Tensor, top_p: Tensor
) -> Tensor:
    kept = filter_logits(logits, temperature, min_p, top_k, top_p).isfinite()
    return logits.masked_fill(~kept, -INF)


def first_row_for_all(
    logits: Tensor, temperature: Tensor, min_p: Tensor, top_k: Tensor, top_p: Tensor
) -> Tensor:
    same = (numbers[:1].expand(len(numbers)) for numbers in (temperature, min_p, top_k, top_p))
    return filter_logits(logits, *same)


def in_sorted_order(
    logits: Tensor, temperature: Tensor, min_p: Tensor, top_k: Tensor, top_p: Tensor
) -> Tensor:
    kept = filter_logits(logits, temperature, min_p, top_k, top_p)
    return kept.sort(dim=-1, descending=True).values


def mask_not_brought_back(
    logits: Tensor, temperature: Tensor, min_p: Tensor, top_k: Tensor, top_p: Tensor
) -> Tensor:
    scaled = divided(logits, temperature)
    shares = scaled.sort(dim=-1, descending=True).values.softmax(-1)
    kept = by_top_p(shares, _left(shares, min_p, top_k), top_p)
    return scaled.masked_fill(~kept, -INF)


def instead(number: float) -> FilterLogits:
    """Dropped tokens get this number."""

    def filtered(
        logits: Tensor, temperature: Tensor, min_p: Tensor, top_k: Tensor, top_p: Tensor
    ) -> Tensor:
        scaled = divided(logits, temperature)
        best, ids = scaled.sort(dim=-1, descending=True)
        shares = best.softmax(-1)
        kept = by_top_p(shares, _left(shares, min_p, top_k), top_p)
        return best.masked_fill(~kept, number).gather(-1, ids.argsort(-1))

    return filtered


zero_instead = instead(0.0)
large_instead = instead(-1e9)
larger_instead = instead(torch.finfo(torch.float32).min)
small_instead = instead(-1e4)


def probabilities(
    logits: Tensor, temperature: Tensor, min_p: Tensor, top_k: Tensor, top_p: Tensor
) -> Tensor:
    return filter_logits(logits, temperature, min_p, top_k, top_p).softmax(-1)


def unfiltered(
    logits: Tensor, temperature: Tensor, min_p: Tensor, top_k: Tensor, top_p: Tensor
) -> Tensor:
    return divided(logits, temperature)


def overflows(
    logits: Tensor, temperature: Tensor, min_p: Tensor, top_k: Tensor, top_p: Tensor
) -> Tensor:
    scaled = logits / temperature[:, None]
    best, ids = scaled.sort(dim=-1, descending=True)
    kept = by_top_p(best.softmax(-1), _left(best.softmax(-1), min_p, top_k), top_p)
    return scaled.masked_fill(~torch.zeros_like(kept).scatter(-1, ids, kept), -INF)
