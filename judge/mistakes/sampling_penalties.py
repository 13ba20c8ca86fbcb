"""Owns the known mistakes of `sampling.penalties`: each is wrong in one way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from mini_engine.compute.plain_sampler import apply_penalties

Tokens = Sequence[Sequence[int]]
Penalize = Callable[[Tensor, Tokens, Tokens, Tensor, Tensor, Tensor], Tensor]
Column = Callable[[Tensor, Tensor, Tensor], Tensor]  # (number [n, 1], asked, given) -> [n, size]
Repeat = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]  # (logits, number, asked, given)


def counts(rows: Tokens, logits: Tensor) -> Tensor:
    found = torch.zeros(logits.shape)
    for row, tokens in enumerate(rows):
        for token in tokens:
            found[row, token] += 1
    return found


def repeated(logits: Tensor, number: Tensor, seen: Tensor) -> Tensor:
    return torch.where(seen, torch.where(logits > 0, logits / number, logits * number), logits)


def usual(logits: Tensor, number: Tensor, asked: Tensor, given: Tensor) -> Tensor:
    return repeated(logits, number, asked + given > 0)


def penalizing(
    *,
    repeat: Repeat = usual,
    often: Column = lambda number, asked, given: number * given,
    once: Column = lambda number, asked, given: number * (given > 0),
) -> Penalize:
    """The right penalties, with one of them computed in another way."""

    def penalized(
        logits: Tensor, prompts: Tokens, outputs: Tokens, repetition: Tensor, frequency: Tensor,
        presence: Tensor,
    ) -> Tensor:  # fmt: skip
        asked, given = counts(prompts, logits), counts(outputs, logits)
        logits = repeat(logits, repetition[:, None], asked, given)
        logits = logits - often(frequency[:, None], asked, given)
        return logits - once(presence[:, None], asked, given)

    return penalized


presence_of_prompt = penalizing(once=lambda number, asked, given: number * (asked + given > 0))
frequency_of_prompt = penalizing(often=lambda number, asked, given: number * (asked + given))
both_of_prompt = penalizing(
    often=lambda number, asked, given: number * (asked + given),
    once=lambda number, asked, given: number * (asked + given > 0),
)
repetition_of_output = penalizing(
    repeat=lambda logits, number, asked, given: repeated(logits, number, given > 0)
)
repetition_of_prompt = penalizing(
    repeat=lambda logits, number, asked, given: repeated(logits, number, asked > 0)
)
always_divided = penalizing(
    repeat=lambda logits, number, asked, given: torch.where(
        asked + given > 0, logits / number, logits
    )
)
always_multiplied = penalizing(
    repeat=lambda logits, number, asked, given: torch.where(
        asked + given > 0, logits * number, logits
    )
)
repetition_by_count = penalizing(
    repeat=lambda logits, number, asked, given: repeated(
        logits, number ** (asked + given), asked + given > 0
    )
)
presence_by_count = penalizing(once=lambda number, asked, given: number * given)
frequency_once = penalizing(often=lambda number, asked, given: number * (given > 0))
added = penalizing(
    often=lambda number, asked, given: -number * given,
    once=lambda number, asked, given: -number * (given > 0),
)
inverted = penalizing(
    repeat=lambda logits, number, asked, given: repeated(logits, number, asked + given == 0),
    often=lambda number, asked, given: number * (given == 0),
    once=lambda number, asked, given: number * (given == 0),
)


def repetition_last(
    logits: Tensor, prompts: Tokens, outputs: Tokens, repetition: Tensor, frequency: Tensor,
    presence: Tensor,
) -> Tensor:  # fmt: skip
    off = torch.zeros_like(frequency)
    first = apply_penalties(
        logits, prompts, outputs, torch.ones_like(repetition), frequency, presence
    )
    return apply_penalties(first, prompts, outputs, repetition, off, off)


def first_penalties(
    logits: Tensor, prompts: Tokens, outputs: Tokens, repetition: Tensor, frequency: Tensor,
    presence: Tensor,
) -> Tensor:  # fmt: skip
    same = (c[:1].expand(len(c)) for c in (repetition, frequency, presence))
    return apply_penalties(logits, prompts, outputs, *same)


def tokens_of_all(
    logits: Tensor, prompts: Tokens, outputs: Tokens, repetition: Tensor, frequency: Tensor,
    presence: Tensor,
) -> Tensor:  # fmt: skip
    asked, given = ([token for row in rows for token in row] for rows in (prompts, outputs))
    count = len(logits)
    return apply_penalties(
        logits, [asked] * count, [given] * count, repetition, frequency, presence
    )


def nothing(
    logits: Tensor, prompts: Tokens, outputs: Tokens, repetition: Tensor, frequency: Tensor,
    presence: Tensor,
) -> Tensor:  # fmt: skip
    return logits.clone()
