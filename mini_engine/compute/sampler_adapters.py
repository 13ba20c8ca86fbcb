"""Owns the adapters that put a function of sampling into the sampler's slot.

Sampling is a chain: bias, minimum length and penalties change the logits, filters leave some of
them, a draw takes one. A learner writes one link at a time; these add the reference's others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from mini_engine.compute.penalties import adjust, adjusts
from mini_engine.compute.plain_sampler import FilterLogits, sample
from mini_engine.control.request import Request

Sample = Callable[[Tensor, Sequence[Request]], list[int]]


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
        result: Any = self.function(logits, *numbers)
        if not isinstance(result, Tensor):
            raise TypeError(f"a filter must return a Tensor, got {type(result).__name__}")
        if result.shape != logits.shape:
            raise ValueError(
                f"a filter must return the logits' shape {tuple(logits.shape)}, "
                f"got {tuple(result.shape)}"
            )
        return result


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
