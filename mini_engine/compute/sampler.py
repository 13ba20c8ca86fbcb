"""Owns the choice of the next token from the logits, for a whole batch at once.

Compare `Sampler.forward` in vLLM's `vllm/v1/sample/sampler.py`: the same stages in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from mini_engine.compute.filters import (
    HEAD,
    Filters,
    best_tokens,
    first_best,
    keeps,
    lowest_kept,
    lowest_of_sorted,
)
from mini_engine.compute.noise import draw_keys, gumbel, log_exponential
from mini_engine.compute.penalties import adjust, adjusts
from mini_engine.control.request import Request

PIECE = 2**17  # numbers whose noise is made at a time


class Sampler:
    """Greedy and random rows side by side; see interfaces.Sampler.

    Bias, minimum length and penalties change the logits. Greedy rows then take the best, and among
    equals the lowest id. The others divide by their temperature, filter, and draw.
    """

    def __call__(self, logits: Tensor, requests: Sequence[Request]) -> list[int]:
        """logits [num_samples, vocab_size], one row per request; returns one token id per row.

        The logits are not changed. Raises ValueError, naming the request, if a row holds a NaN: its
        forward pass went wrong, and any token chosen from it would be an accident.
        """
        if logits.shape[0] != len(requests):
            raise ValueError(f"{logits.shape[0]} rows of logits for {len(requests)} requests")
        if not requests:
            return []
        _refuse_nan(logits, requests)
        logits = _adjusted(logits, requests)
        drawn = [row for row, r in enumerate(requests) if not r.params.greedy]
        if not drawn:
            return first_best(logits).tolist()
        if len(drawn) == len(requests):
            return draw(logits, requests).tolist()
        rows = torch.tensor(drawn, device=logits.device)
        token_ids = first_best(logits)
        token_ids[rows] = draw(logits[rows], [requests[row] for row in drawn])
        return token_ids.tolist()


def _refuse_nan(logits: Tensor, requests: Sequence[Request]) -> None:
    sums = logits.sum(dim=-1)  # a NaN anywhere makes the sum one
    if not torch.isnan(sums).any():
        return
    rows = torch.isnan(logits).any(dim=-1).nonzero().flatten().tolist()
    if rows:  # else infinities cancelled each other
        names = ", ".join(repr(requests[row].request_id) for row in rows)
        raise ValueError(
            f"the logits of request {names} hold NaN; the weights or the KV cache are damaged"
        )


def _adjusted(logits: Tensor, requests: Sequence[Request]) -> Tensor:
    """The logits after bias, minimum length and penalties; a copy if any row changes."""
    changed = [row for row, request in enumerate(requests) if adjusts(request)]
    if not changed:
        return logits
    rows = torch.tensor(changed, device=logits.device)
    part = logits[rows].float()
    adjust(part, [requests[row] for row in changed])
    return logits.float().index_copy(0, rows, part)


def draw(logits: Tensor, requests: Sequence[Request]) -> Tensor:
    """A random token per row, none of whose parameters is greedy: int64 [n].

    Which token it is depends on the row's logits, its parameters, and the request's seed, choice
    and output number; on no other row.
    """
    logits = logits.float()
    temperatures = logits.new_tensor([r.params.temperature for r in requests])
    # The best becomes 0: even the smallest temperature then divides without overflow.
    logits = (logits - logits.amax(-1, keepdim=True)).div_(temperatures[:, None])
    keys = draw_keys(requests, logits.device)
    filters = Filters.of([r.params for r in requests], logits.shape[1], logits.device)
    filtered, free = filters.active.nonzero().flatten(), (~filters.active).nonzero().flatten()
    if not len(free):
        return _draw_filtered(logits, filters, keys)
    if not len(filtered):
        return _draw_any(logits, keys)
    chosen = torch.empty(len(requests), dtype=torch.int64, device=logits.device)
    chosen[filtered] = _draw_filtered(logits[filtered], filters.rows(filtered), keys[filtered])
    chosen[free] = _draw_any(logits[free], keys[free])
    return chosen


def _draw_filtered(logits: Tensor, filters: Filters, keys: Tensor) -> Tensor:
    """For rows with a filter: nearly always all that it keeps is among the best few."""
    best, ids = best_tokens(logits, min(HEAD, logits.shape[1]))
    lowest, unsure = lowest_kept(logits, filters, best)
    best = best.masked_fill(best < lowest[:, None], -torch.inf)
    chosen = ids.gather(-1, (best + gumbel(keys, ids)).argmax(-1, keepdim=True)).squeeze(-1)
    if len(unsure):
        chosen[unsure] = _draw_wide(logits[unsure], filters.rows(unsure), keys[unsure])
    return chosen


def _draw_wide(logits: Tensor, filters: Filters, keys: Tensor) -> Tensor:
    """For rows whose filters keep many tokens.

    What wins among all tokens and is kept also wins among those that are kept. Only where the
    winner is filtered out does a row have to know exactly what is left.
    """
    chosen = _draw_any(logits, keys)
    again = (~keeps(logits, filters, chosen)).nonzero().flatten()
    if len(again):
        rest = logits[again]
        lowest = lowest_of_sorted(rest, filters.rows(again))
        chosen[again] = _draw_any(rest.masked_fill(rest < lowest[:, None], -torch.inf), keys[again])
    return chosen


def _draw_any(logits: Tensor, keys: Tensor) -> Tensor:
    """For rows that may take any token whose logit is finite.

    The largest of `logits + gumbel(keys, all ids)`, piece by piece, so that a piece stays in the
    processor's cache through all that is done to it. A maximum without its place is ten times
    cheaper than one with it, so the place is looked for in the best piece only.
    """
    rows, vocab_size = logits.shape
    width = min(max(PIECE // rows, 1024), vocab_size)
    all_ids = torch.arange(vocab_size, device=logits.device)
    best = [
        (part - log_exponential(keys, ids[None])).amax(-1)
        for part, ids in zip(logits.split(width, dim=-1), all_ids.split(width), strict=True)
    ]
    first = torch.stack(best, dim=-1).argmax(-1, keepdim=True) * width
    ids = (first + all_ids[:width]).clamp(max=vocab_size - 1)
    winner = (logits.gather(-1, ids) - log_exponential(keys, ids)).argmax(-1, keepdim=True)
    return ids.gather(-1, winner).squeeze(-1)
