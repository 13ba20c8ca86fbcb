"""min-p, top-k, top-p: SEMANTICS 32, and the same as the filters of transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import MinPLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from mini_engine.compute.filters import Filters, lowest_of_sorted
from mini_engine.sampling_params import SamplingParams

CASE = torch.tensor([[2.0, 1.0, 0.0, -1.0]])


def kept(logits: Tensor, *params: SamplingParams) -> list[list[int]]:
    """The token ids that survive, row by row; every filter row is given all the same logits."""
    rows = logits.expand(len(params), -1) if len(logits) == 1 else logits
    filters = Filters.of(params, rows.shape[1], rows.device)
    lowest = lowest_of_sorted(rows, filters, width=64)  # small, so that it has to widen
    return [
        (row >= least).nonzero().flatten().tolist() for row, least in zip(rows, lowest, strict=True)
    ]


def some(**fields: Any) -> SamplingParams:
    return SamplingParams(temperature=1.0, **fields)


def test_case_32_which_tokens_are_kept() -> None:
    assert kept(CASE, some(top_p=0.8), some(top_p=0.6)) == [[0, 1], [0]]
    assert kept(CASE, some(top_k=2, top_p=0.7)) == [[0]]  # renormalized: .731 alone is enough
    assert kept(CASE, some(top_k=2, top_p=0.74)) == [[0, 1]]
    assert kept(CASE, some(top_p=0.65), some(min_p=0.3, top_p=0.65)) == [[0, 1], [0]]
    everything = [0, 1, 2, 3]
    assert kept(CASE, some(), some(top_k=-1), some(top_k=0), some(top_k=9)) == [everything] * 4
    assert kept(CASE, some(top_p=1e-9), some(top_k=1), some(min_p=1.0)) == [[0]] * 3


def test_the_token_that_crosses_top_p_is_kept() -> None:
    logits = torch.tensor([[0.1, 0.2, 0.3, 0.4]]).log()
    assert kept(logits, some(top_p=0.6)) == [[2, 3]]


def test_equal_logits_survive_together() -> None:
    logits = torch.tensor([[1.0, 3.0, 3.0, 3.0, 0.0]])
    assert kept(logits, some(top_k=2), some(top_p=0.1)) == [[1, 2, 3]] * 2
    level = torch.zeros(1, 1000)
    assert kept(level, some(top_k=5), some(top_p=0.1)) == [list(range(1000))] * 2


def transformers_keeps(logits: Tensor, top_k: int, top_p: float, min_p: float) -> list[int]:
    """min-p, top-k, top-p, in this order (which is vLLM's), with the processors of transformers."""
    ids = torch.zeros(1, 1, dtype=torch.int64)
    scores = logits
    if min_p > 0:
        scores = MinPLogitsWarper(min_p)(ids, scores)
    if top_k > 0:
        scores = TopKLogitsWarper(top_k)(ids, scores)
    if top_p < 1:
        scores = TopPLogitsWarper(top_p)(ids, scores)
    return scores.isfinite().flatten().nonzero().flatten().tolist()


@settings(deadline=None, max_examples=150)
@given(
    seed=st.integers(0, 10**6),
    size=st.sampled_from([5, 127, 128, 129, 500, 3000]),
    spread=st.sampled_from([0.05, 1.0, 5.0]),
    top_k=st.sampled_from([0, 1, 3, 100, 127, 128, 129, 2500]),
    top_p=st.sampled_from([1.0, 0.05, 0.5, 0.9, 0.999]),
    min_p=st.sampled_from([0.0, 0.01, 0.2, 1.0]),
)
def test_the_same_tokens_as_transformers(
    seed: int, size: int, spread: float, top_k: int, top_p: float, min_p: float
) -> None:
    """Wide distributions too, where the first few tokens that are sorted are not enough."""
    generator = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(1, size, generator=generator, dtype=torch.float64)
    ours = kept(logits, some(top_k=top_k, top_p=top_p, min_p=min_p))
    assert ours == [transformers_keeps(logits, top_k, top_p, min_p)]


def test_each_row_has_its_own_filters() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(5, 3000, generator=generator, dtype=torch.float64)
    rows = [some(), some(top_k=4), some(top_p=0.99), some(min_p=0.01, top_k=2999), some(top_p=0.3)]
    together = kept(logits, *rows)
    assert together == [kept(logits[i : i + 1], row)[0] for i, row in enumerate(rows)]
    assert len({len(ids) for ids in together}) == 5


def test_top_k_beyond_the_sorted_head_with_top_p_counts_all_of_top_k() -> None:
    """The share that top-p counts is of all that top-k left, not of those sorted at first."""
    level = torch.linspace(0.001, 0, 1000, dtype=torch.float64)[None]
    assert len(kept(level, some(top_k=1000, top_p=0.5))[0]) == pytest.approx(500, abs=2)
