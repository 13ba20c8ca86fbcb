"""Owns the known mistakes of `sampling.logprobs`: each is wrong in one way."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from mini_engine.compute.logprobs import token_logprobs
from mini_engine.interfaces import TokenLogprobs

Tell = Callable[[Tensor, Sequence[int], Sequence[int]], list[TokenLogprobs]]
Change = Callable[[Tensor, TokenLogprobs], dict[str, Any]]  # (row of logits, entry) -> fields


def changing(change: Change) -> Tell:
    """The right entries, some fields of which are others."""

    def tell(
        logits: Tensor, token_ids: Sequence[int], counts: Sequence[int]
    ) -> list[TokenLogprobs]:
        right = token_logprobs(logits, token_ids, counts)
        pairs = zip(logits.float(), right, strict=True)
        return [dataclasses.replace(entry, **change(row, entry)) for row, entry in pairs]

    return tell


def with_numbers(number: Callable[[float], Any]) -> Tell:
    """Every log probability becomes another number."""
    return changing(
        lambda row, entry: {
            "logprob": number(entry.logprob),
            "top": tuple((token, number(value)) for token, value in entry.top),
        }
    )


def from_table(table: Callable[[Tensor], Tensor]) -> Tell:
    """Everything is looked up in a table of the logits' shape, row by row."""

    def tell(
        logits: Tensor, token_ids: Sequence[int], counts: Sequence[int]
    ) -> list[TokenLogprobs]:
        found = []
        for row, token, count in zip(table(logits), token_ids, counts, strict=True):
            best, ids = row.topk(min(count, len(row)))
            top = tuple(zip(ids.tolist(), best.tolist(), strict=True))
            rank = int((row > row[token]).sum()) + 1
            found.append(TokenLogprobs(token, float(row[token]), rank, top))
        return found

    return tell


def with_counts(choose: Callable[[Sequence[int]], int]) -> Tell:
    """Every row gets the same count."""

    def tell(
        logits: Tensor, token_ids: Sequence[int], counts: Sequence[int]
    ) -> list[TokenLogprobs]:
        return token_logprobs(logits, token_ids, [choose(counts)] * len(counts))

    return tell


ranks_from_zero = changing(lambda row, entry: {"rank": entry.rank - 1})
ranks_of_equals = changing(lambda row, entry: {"rank": int((row >= row[entry.token_id]).sum())})
ranks_from_the_worst = changing(
    lambda row, entry: {"rank": int((row < row[entry.token_id]).sum()) + 1}
)
chosen_in_front = changing(
    lambda row, entry: {
        "top": (
            (entry.token_id, entry.logprob),
            *(pair for pair in entry.top if pair[0] != entry.token_id),
        )
    }
)
chosen_added = changing(
    lambda row, entry: {
        "top": entry.top
        if entry.token_id in dict(entry.top)
        else (*entry.top, (entry.token_id, entry.logprob))
    }
)
probabilities = with_numbers(math.exp)
base_two = with_numbers(lambda number: number / math.log(2))
tensors = with_numbers(torch.tensor)
raw_logits = from_table(lambda logits: logits.float())
over_rows = from_table(lambda logits: logits.float().log_softmax(0))
over_all = from_table(lambda logits: logits.float().flatten().log_softmax(0).view(logits.shape))
overflows = from_table(
    lambda logits: (logits.float().exp() / logits.float().exp().sum(-1, keepdim=True)).log()
)
own_dtype = from_table(lambda logits: logits.log_softmax(-1).float())
first_count = with_counts(lambda counts: counts[0])
largest_count = with_counts(max)


def second_best(
    logits: Tensor, token_ids: Sequence[int], counts: Sequence[int]
) -> list[TokenLogprobs]:
    more = token_logprobs(logits, token_ids, [count + 1 for count in counts])
    return [dataclasses.replace(entry, top=entry.top[1:]) for entry in more]


def worst_first(
    logits: Tensor, token_ids: Sequence[int], counts: Sequence[int]
) -> list[TokenLogprobs]:
    everything = token_logprobs(logits, token_ids, [logits.shape[1]] * len(counts))
    pairs = zip(everything, counts, strict=True)
    return [dataclasses.replace(entry, top=entry.top[::-1][:count]) for entry, count in pairs]
