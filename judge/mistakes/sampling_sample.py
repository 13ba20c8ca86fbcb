"""Owns the known mistakes of `sampling.sample`: each is wrong in one way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from mini_engine.compute.noise import draw_keys, gumbel
from mini_engine.compute.plain_sampler import filter_logits, sample
from mini_engine.control.request import Request

Requests = Sequence[Request]
Sums = Callable[[Tensor, Requests, Requests], Tensor]  # (logits, their requests, all) -> [k, size]
NAMES = ("temperature", "min_p", "top_k", "top_p")


def numbers(requests: Requests, *, greedy_as: float = 1.0) -> list[Tensor]:
    """The four columns of these requests; a temperature of 0 becomes `greedy_as`."""
    temperatures = [r.params.temperature or greedy_as for r in requests]
    others = [torch.tensor([getattr(r.params, name) for r in requests]) for name in NAMES[1:]]
    return [torch.tensor(temperatures), *others]


def drawn_rows(requests: Requests) -> list[int]:
    return [row for row, request in enumerate(requests) if not request.params.greedy]


def noise(requests: Requests, size: int) -> Tensor:
    return gumbel(draw_keys(requests, torch.device("cpu")), torch.arange(size)[None])


def choosing(sums: Sums) -> Callable[[Tensor, Requests], list[int]]:
    """The right sampler, in which the best of other sums is drawn."""

    def chosen(logits: Tensor, requests: Requests) -> list[int]:
        tokens, rows = logits.argmax(-1), drawn_rows(requests)
        if rows:
            some = [requests[row] for row in rows]
            tokens[rows] = sums(logits[rows], some, requests).argmax(-1)
        return tokens.tolist()

    return chosen


def kept(logits: Tensor, requests: Requests) -> Tensor:
    return filter_logits(logits, *numbers(requests))


def _keys_of_the_batch(logits: Tensor, some: Requests, everyone: Requests) -> Tensor:
    return kept(logits, some) + noise(everyone, logits.shape[1])[: len(some)]


def _one_row_of_noise(logits: Tensor, some: Requests, everyone: Requests) -> Tensor:
    return kept(logits, some) + noise(some[:1], logits.shape[1])


def _noise_of_ranks(logits: Tensor, some: Requests, everyone: Requests) -> Tensor:
    """Token ids are taken for granted: the noise stands in the order of the sorted row."""
    ids = logits.argsort(dim=-1, descending=True)
    sums = kept(logits, some).gather(-1, ids) + noise(some, logits.shape[1])
    return torch.empty_like(sums).scatter(-1, ids, sums)


def _unfiltered(logits: Tensor, some: Requests, everyone: Requests) -> Tensor:
    return logits / numbers(some)[0][:, None] + noise(some, logits.shape[1])


def _noise_first(logits: Tensor, some: Requests, everyone: Requests) -> Tensor:
    return kept(logits + noise(some, logits.shape[1]), some)


def _noise_before_temperature(logits: Tensor, some: Requests, everyone: Requests) -> Tensor:
    return kept(logits, some) + noise(some, logits.shape[1]) / numbers(some)[0][:, None]


def _no_temperature(logits: Tensor, some: Requests, everyone: Requests) -> Tensor:
    dropped = kept(logits, some).isinf()
    return (logits + noise(some, logits.shape[1])).masked_fill(dropped, -torch.inf)


def _subtracted(logits: Tensor, some: Requests, everyone: Requests) -> Tensor:
    return kept(logits, some) - noise(some, logits.shape[1])


def _on_probabilities(logits: Tensor, some: Requests, everyone: Requests) -> Tensor:
    return kept(logits, some).softmax(-1) + noise(some, logits.shape[1])


def _first_numbers(logits: Tensor, some: Requests, everyone: Requests) -> Tensor:
    same = (column[:1].expand(len(some)) for column in numbers(some))
    return filter_logits(logits, *same) + noise(some, logits.shape[1])


def _no_noise(logits: Tensor, some: Requests, everyone: Requests) -> Tensor:
    return kept(logits, some)


keys_of_the_batch = choosing(_keys_of_the_batch)
one_row_of_noise = choosing(_one_row_of_noise)
noise_of_ranks = choosing(_noise_of_ranks)
unfiltered = choosing(_unfiltered)
noise_first = choosing(_noise_first)
noise_before_temperature = choosing(_noise_before_temperature)
no_temperature = choosing(_no_temperature)
subtracted = choosing(_subtracted)
on_probabilities = choosing(_on_probabilities)
first_numbers = choosing(_first_numbers)
no_noise = choosing(_no_noise)


def all_drawn(logits: Tensor, requests: Requests) -> list[int]:
    """Greedy ones, too, at temperature 1."""
    if not requests:
        return []
    return (kept(logits, requests) + noise(requests, logits.shape[1])).argmax(-1).tolist()


def greedy_if_any(logits: Tensor, requests: Requests) -> list[int]:
    """One greedy row makes all of them greedy."""
    if len(drawn_rows(requests)) < len(requests):
        return logits.argmax(-1).tolist()
    return sample(logits, requests)


def greedy_of_first(logits: Tensor, requests: Requests) -> list[int]:
    """The first request decides for all."""
    if requests and not requests[0].params.greedy:
        return all_drawn(logits, requests)
    return logits.argmax(-1).tolist()


def greedy_in_front(logits: Tensor, requests: Requests) -> list[int]:
    """Greedy tokens first, then the drawn ones."""
    tokens, drawn = sample(logits, requests), drawn_rows(requests)
    greedy = [row for row in range(len(requests)) if row not in drawn]
    return [tokens[row] for row in (*greedy, *drawn)]


def drawn_in_front(logits: Tensor, requests: Requests) -> list[int]:
    tokens, drawn = sample(logits, requests), drawn_rows(requests)
    greedy = [row for row in range(len(requests)) if row not in drawn]
    return [tokens[row] for row in (*drawn, *greedy)]


def last_of_equals(logits: Tensor, requests: Requests) -> list[int]:
    tokens = sample(logits, requests)
    for row, request in enumerate(requests):
        if request.params.greedy:
            tokens[row] = int((logits[row] == logits[row].max()).nonzero()[-1])
    return tokens


def as_tensor(logits: Tensor, requests: Requests) -> Any:
    return torch.tensor(sample(logits, requests)) if requests else []


def as_tensors(logits: Tensor, requests: Requests) -> Any:
    """A list, but of tensors."""
    return list(torch.tensor(sample(logits, requests), dtype=torch.int64))
