"""Bias, minimum length and penalties: SEMANTICS 33, and the same as in transformers."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import RepetitionPenaltyLogitsProcessor

from mini_engine.compute.penalties import adjust, adjusts
from mini_engine.control.request import Request
from mini_engine.sampling_params import SamplingParams

CASE = [2.0, 1.0, 0.0, -1.0]


def request(prompt: list[int], outputs: list[int], **fields: Any) -> Request:
    ends = frozenset(fields.pop("ends", ()))
    params = SamplingParams(**fields)
    return Request("r", prompt, params, end_token_ids=ends, output_token_ids=outputs)


def adjusted(*requests: Request) -> list[list[float]]:
    logits = torch.tensor([CASE] * len(requests), dtype=torch.float64)
    adjust(logits, requests)
    return [[round(number, 6) for number in row] for row in logits.tolist()]


def test_case_33_penalties() -> None:
    three = [0, 0, 0]
    rows = adjusted(
        request([2], three, presence_penalty=0.5),
        request([2], three, frequency_penalty=0.5),
        request([2], three, presence_penalty=0.5, frequency_penalty=0.5),
        request([0], [3], repetition_penalty=2.0),
    )
    assert [row[0] for row in rows[:3]] == [1.5, 0.5, 0.0]
    assert rows[3] == [1.0, 1.0, 0.0, -2.0]
    assert all(row[1:] == CASE[1:] for row in rows[:3])


def test_case_33_presence_and_frequency_count_the_output_only() -> None:
    asked = {"presence_penalty": 1.0, "frequency_penalty": 1.0}
    assert adjusted(request([0, 0, 1], [], **asked)) == [CASE]
    assert adjusted(request([0, 0, 1], [1], **asked)) == [[2.0, -1.0, 0.0, -1.0]]


def test_case_33_repetition_comes_first() -> None:
    row = request([1], [0, 0], repetition_penalty=2.0, frequency_penalty=0.25, presence_penalty=0.5)
    assert adjusted(row) == [[2.0 / 2 - 2 * 0.25 - 0.5, 0.5, 0.0, -1.0]]


def test_bias_comes_before_the_penalties() -> None:
    row = request([2], [2], logit_bias={2: 4.0, 1: -100}, repetition_penalty=2.0)
    assert adjusted(row) == [[2.0, -99.0, 2.0, -1.0]]


def test_before_min_tokens_no_end_token_can_be_chosen() -> None:
    short = request([1], [2], ends=[0, 3, 99], min_tokens=2)
    (row,) = adjusted(short)
    assert row == [float("-inf"), 1.0, 0.0, float("-inf")]
    assert not adjusts(request([1], [2, 2], ends=[0], min_tokens=2))
    assert adjusts(short)


def test_only_what_was_asked_for_is_adjusted() -> None:
    assert not adjusts(request([1], [0, 0]))
    for fields in ({"logit_bias": {1: 1.0}}, {"presence_penalty": 0.1}, {"repetition_penalty": 2}):
        assert adjusts(request([1], [0], **fields))


tokens = st.lists(st.integers(0, 9), max_size=12)


@settings(deadline=None, max_examples=100)
@given(rows=st.lists(st.tuples(tokens, tokens, st.floats(0.5, 3.0)), min_size=1, max_size=4))
def test_repetition_penalty_is_that_of_transformers(
    rows: list[tuple[list[int], list[int], float]],
) -> None:
    generator = torch.Generator().manual_seed(len(rows))
    logits = torch.randn(len(rows), 10, generator=generator, dtype=torch.float64)
    ours = logits.clone()
    adjust(ours, [request([0, *p], out, repetition_penalty=r) for p, out, r in rows])
    for row, (prompt, outputs, penalty) in enumerate(rows):
        ids = torch.tensor([[0, *prompt, *outputs]])
        theirs = RepetitionPenaltyLogitsProcessor(penalty)(ids, logits[row : row + 1].clone())
        torch.testing.assert_close(ours[row : row + 1], theirs)
