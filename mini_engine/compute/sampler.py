"""Owns the choice of the next token from the logits, for a whole batch at once.

Compare `Sampler.forward` in vLLM's `vllm/v1/sample/sampler.py`: the same stages in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from mini_engine.compute.filters import HEAD, Filters, lowest_kept
from mini_engine.compute.noise import draw_keys, gumbel
from mini_engine.compute.penalties import adjust, adjusts
from mini_engine.control.request import Request


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
            return logits.argmax(dim=-1).tolist()
        if len(drawn) == len(requests):
            return draw(logits, requests).tolist()
        rows = torch.tensor(drawn, device=logits.device)
        # `argmax` gives the first of equal maxima.
        token_ids = logits.argmax(dim=-1)
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
    logits = (logits - logits.amax(-1, keepdim=True)) / temperatures[:, None]
    keys = draw_keys(requests, logits.device)
    filters = Filters.of([r.params for r in requests], logits.shape[1], logits.device)
    chosen = torch.empty(len(requests), dtype=torch.int64, device=logits.device)
    filtered, free = filters.active.nonzero().flatten(), (~filters.active).nonzero().flatten()
    if len(filtered):
        chosen[filtered] = _draw_filtered(logits[filtered], filters.rows(filtered), keys[filtered])
    if len(free):
        chosen[free] = _draw_any(logits[free], keys[free])
    return chosen


def _draw_filtered(logits: Tensor, filters: Filters, keys: Tensor) -> Tensor:
    """For rows with a filter: nearly always all that it keeps is among the best few."""
    best, ids = logits.topk(min(HEAD, logits.shape[1]), dim=-1)
    lowest = lowest_kept(logits, filters, best)[:, None]
    best = best.masked_fill(best < lowest, -torch.inf)
    winners = (best + gumbel(keys, ids)).argmax(-1, keepdim=True)
    chosen = ids.gather(-1, winners).squeeze(-1)
    beyond = best[:, -1].isfinite().nonzero().flatten()  # these keep more than the best few
    if len(beyond):
        kept = logits[beyond].masked_fill(logits[beyond] < lowest[beyond], -torch.inf)
        chosen[beyond] = _draw_any(kept, keys[beyond])
    return chosen


def _draw_any(logits: Tensor, keys: Tensor) -> Tensor:
    """For rows that may take any token whose logit is finite."""
    token_ids = torch.arange(logits.shape[1], device=logits.device)[None]
    return (logits + gumbel(keys, token_ids)).argmax(-1)
