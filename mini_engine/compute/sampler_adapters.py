"""Owns the adapters that put a function of sampling into the sampler's slot.

Sampling is a chain: bias, minimum length and penalties change the logits, filters leave some of
them, a draw takes one. A learner writes one link at a time; these add the reference's others.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from mini_engine.compute.penalties import adjust, adjusts
from mini_engine.compute.plain_sampler import FilterLogits, sample
from mini_engine.compute.sampler import Sampler
from mini_engine.control.request import Request

Sample = Callable[[Tensor, Sequence[Request]], list[int]]
# (logits, prompts, outputs, repetition, frequency, presence) -> logits
Penalties = Callable[
    [Tensor, Sequence[Sequence[int]], Sequence[Sequence[int]], Tensor, Tensor, Tensor], Tensor
]
NAMES = ("repetition_penalty", "frequency_penalty", "presence_penalty")
OFF: dict[str, float] = dict(zip(NAMES, (1.0, 0.0, 0.0), strict=True))


def adjusted(logits: Tensor, requests: Sequence[Request]) -> Tensor:
    """The logits after the reference's bias, minimum length and penalties; a copy if they change"""
    if not any(adjusts(request) for request in requests):
        return logits
    logits = logits.float().clone()
    adjust(logits, requests)
    return logits


class FilteringSampler:
    """interfaces.Sampler made of a function that filters logits."""

    def __init__(self, function: FilterLogits) -> None:
        self.function = function

    def __call__(self, logits: Tensor, requests: Sequence[Request]) -> list[int]:
        """Draw from what the function leaves."""
        return sample(adjusted(logits, requests), requests, keep=self._filtered)

    def _filtered(self, logits: Tensor, *numbers: Tensor) -> Tensor:
        return _checked(self.function(logits, *numbers), logits)


class DrawingSampler:
    """interfaces.Sampler made of a function that chooses tokens from penalized logits."""

    def __init__(self, function: Sample) -> None:
        self.function = function

    def __call__(self, logits: Tensor, requests: Sequence[Request]) -> list[int]:
        """Ask the function once for all rows, and look at what it gives."""
        tokens: Any = self.function(adjusted(logits, requests), requests)
        if type(tokens) is not list or any(type(token) is not int for token in tokens):
            raise TypeError(f"a sampler must return a list of ints, got {_kinds(tokens)}")
        for token in tokens:
            if not 0 <= token < logits.shape[1]:
                raise ValueError(f"the sampler chose {token} of {logits.shape[1]} tokens")
        return tokens


class PenalizingSampler:
    """interfaces.Sampler made of a function that applies penalties, in front of another sampler."""

    def __init__(self, function: Penalties, sampler: Sample) -> None:
        self.function = function
        self.sampler = sampler

    def __call__(self, logits: Tensor, requests: Sequence[Request]) -> list[int]:
        """Bias and minimum length are the reference's; the other sampler has none of it to do."""
        biased = adjusted(logits, [_unpenalized(request) for request in requests]).float()
        rows = [row for row, request in enumerate(requests) if request.params.has_penalties]
        if rows:
            some = [requests[row] for row in rows]
            numbers = (logits.new_tensor([getattr(r.params, n) for r in some]) for n in NAMES)
            prompts, outputs = ([list(getattr(r, f"{kind}_token_ids")) for r in some]
                                for kind in ("prompt", "output"))  # fmt: skip
            result = _checked(self.function(biased[rows], prompts, outputs, *numbers), biased[rows])
            biased = biased.index_copy(0, torch.tensor(rows, device=logits.device), result)
        return self.sampler(biased, [_plain(request) for request in requests])


def _with(request: Request, **fields: Any) -> Request:
    """The request with other parameters; everything else is shared."""
    other = copy.copy(request)
    other.params = dataclasses.replace(request.params, **fields)
    return other


def _unpenalized(request: Request) -> Request:
    return _with(request, **OFF) if request.params.has_penalties else request


def _plain(request: Request) -> Request:
    """The request without anything that changes logits before a token is chosen."""
    if not adjusts(request):
        return request
    return _with(request, **OFF, logit_bias={}, min_tokens=0)


def _checked(result: Any, logits: Tensor) -> Tensor:
    """Raise TypeError or ValueError unless a function gave logits for logits."""
    if not isinstance(result, Tensor):
        raise TypeError(f"logits must come back as a Tensor, got {type(result).__name__}")
    if result.shape != logits.shape:
        raise ValueError(
            f"logits must come back in their shape {tuple(logits.shape)}, got {tuple(result.shape)}"
        )
    return result


def _kinds(tokens: Any) -> str:
    """The type of a thing; of a list, also the types in it."""
    name = type(tokens).__name__
    if type(tokens) is not list:
        return name
    return f"{name} of {', '.join(dict.fromkeys(type(token).__name__ for token in tokens))}"


def filtering_sampler(function: FilterLogits) -> Callable[[], FilteringSampler]:
    """What the sampler slot takes, made of such a function."""
    return lambda: FilteringSampler(function)


def drawing_sampler(function: Sample) -> Callable[[], DrawingSampler]:
    """What the sampler slot takes, made of such a function."""
    return lambda: DrawingSampler(function)


def penalizing_sampler(
    function: Penalties, below: Callable[[], Sample] | None
) -> Callable[[], PenalizingSampler]:
    """What the sampler slot takes, made of such a function and what fills the slot so far."""
    return lambda: PenalizingSampler(function, (below or Sampler)())
