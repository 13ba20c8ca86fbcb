"""Owns the checks, hints and known mistakes of `kv-cache.attention`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from judge import attention_cases, tensor_compare
from judge.api import Case, Check, Details, Mistake
from judge.tensor_checks import smollm2_check, tiny_check

CALL = "judge.tensor_calls:call"
UPPER_LEFT = "the mask starts in the upper left corner, not in the lower right"
NAMES = ("query", "key", "value", "scale")


def make(label: str, numbers: Any, **more: Any) -> Case:
    args = [numbers[name] for name in NAMES]
    payload = {
        "function": "attention_over_contiguous", "names": list(NAMES), "args": args, **more
    }  # fmt: skip
    shapes = f"query {list(args[0].shape)}, key and value {list(args[1].shape)}"
    return Case(f"attention_over_contiguous({shapes}, scale {args[3]:.4g}), {label}", payload)


def half_precision(rng: random.Random) -> Sequence[Case]:
    cases = attention_cases.mixed(rng, make, 4, (16, 32))
    for case in cases:
        args = case.payload["args"]
        case.payload["args"] = [*map(tensor_compare.bfloat16, args[:3]), args[3]]
    return cases


def slices(rng: random.Random) -> Sequence[Case]:
    numbers, names = attention_cases.draw(rng, 3, 7, 4, 2), ["query", "key", "value"]
    return [
        make("all three are slices of larger tensors", numbers, strided=names),
        make("all three lie in memory with the heads first", numbers, heads_first=names),
    ]


def refused(rng: random.Random) -> Sequence[Case]:
    return [
        make(f"{n} queries for {length} positions", attention_cases.draw(rng, n, length, 2, 1))
        for n, length in ((2, 1), (rng.randint(5, 9), 4))
    ]


def _cases(build: Any, *args: Any) -> Any:
    return lambda rng: build(rng, make, *args)


def _check(name: str, title: str, cases: Any) -> Check:
    compare = tensor_compare.compare_with(tensor_compare.attention_oracle)
    return Check(name, title, CALL, cases, compare)


EXERCISE = Details(
    checks=(
        _check("averages", "equal scores give the mean of the visible values",
               _cases(attention_cases.averages)),
        _check("one-token", "one new token sees everything kept", _cases(attention_cases.decodes)),
        _check("prompt", "in a prompt nobody sees the future", _cases(attention_cases.prompts)),
        _check("append", "several tokens behind kept ones", _cases(attention_cases.appends)),
        _check("shared-heads", "query heads that share a KV head",
               _cases(attention_cases.shared_heads)),
        _check("scale", "the scale is the argument's", _cases(attention_cases.scales)),
        _check("large", "large scores do not overflow", _cases(attention_cases.large)),
        _check("far-below", "scores far below zero", _cases(attention_cases.far_below)),
        _check("random", "random shapes against float64",
               _cases(attention_cases.mixed, 8, (2, 8, 64))),
        _check("slices", "arguments that are not contiguous", slices),
        _check("bfloat16", "bfloat16 in, bfloat16 out", half_precision),
        _check("refuses", "more queries than positions is a ValueError", refused),
        tiny_check("llama", "qwen3"),
        smollm2_check(),
    ),
    hints=(
        "Three tokens are appended to a cache of five. How many of the eight keys may the first of "
        "the three see, and how many the last? Draw the 3 by 8 table of who sees whom: in which "
        "corner does its triangle start?",
        "Query i stands at position L - n + i, so the triangle of the mask ends in the lower right "
        "corner: the last query always sees the last key, and a single query sees all. Weights are "
        "normalized over the keys, for each query and head alone. Neighbouring query heads share a "
        "KV head: the first group reads KV head 0.",
        "refuse more queries than keys\n"
        "repeat each KV head for the query heads of its group, neighbours together\n"
        "scores [heads, n, L]: each query with each key, times the scale\n"
        "where a key's position is larger than the query's own (offset L - n): minus infinity\n"
        "softmax over the last dimension, then the weighted sum of the values\n"
        "bring heads and tokens back into the query's order",
    ),
    mistakes=tuple(
        Mistake(name, {"attention_over_contiguous": f"judge.mistakes.attention:{function}"})
        for name, function in (
            ("no causal mask: every query sees every key", "no_mask"),
            ("no causal mask where tokens are appended to kept ones", "no_mask_on_append"),
            (UPPER_LEFT, "upper_left"),
            (UPPER_LEFT, "upper_left_always"),
            ("a token does not see itself", "not_itself"),
            ("query heads read the KV heads in turn, not in groups", "heads_in_turn"),
            ("all query heads read the first KV head", "first_kv_head"),
            ("the scale is left out", "no_scale"),
            ("the scale is computed, the argument ignored", "own_scale"),
            ("the scale is applied twice", "scale_twice"),
            ("softmax over the queries instead of the keys", "softmax_over_queries"),
            ("softmax over the heads instead of the keys", "softmax_over_heads"),
            ("masked scores are 0 instead of minus infinity", "masked_with_zero"),
            ("the mask is applied after the softmax", "mask_after_softmax"),
            ("exp without subtracting the largest score", "overflows"),
            ("n > L goes unnoticed", "takes_more_queries"),
        )
    ),
)  # fmt: skip
