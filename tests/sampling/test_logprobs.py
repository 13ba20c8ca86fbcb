"""Log probabilities: SEMANTICS 34."""

from __future__ import annotations

import pytest
import torch

from mini_engine.compute.logprobs import token_logprobs


def test_case_34_two_asked_and_the_last_token_sampled() -> None:
    logits = torch.tensor([[2.0, 1.0, 0.0, -1.0]])
    (entry,) = token_logprobs(logits, [3], [2])
    assert entry.token_id == 3
    assert entry.rank == 4
    assert entry.logprob == pytest.approx(-3.440190, abs=1e-5)
    assert [token for token, _ in entry.top] == [0, 1]
    assert [value for _, value in entry.top] == pytest.approx([-0.440190, -1.440190], abs=1e-5)


def test_rows_have_their_own_counts() -> None:
    logits = torch.randn(3, 50, generator=torch.Generator().manual_seed(0))
    entries = token_logprobs(logits, [4, 5, 6], [0, 3, 20])
    assert [len(entry.top) for entry in entries] == [0, 3, 20]
    everything = logits.log_softmax(-1)
    for row, entry in enumerate(entries):
        assert entry.logprob == pytest.approx(float(everything[row, 4 + row]), abs=1e-5)
        assert entry.rank == int((everything[row] > everything[row, 4 + row]).sum()) + 1


def test_more_asked_than_there_are_tokens() -> None:
    (entry,) = token_logprobs(torch.tensor([[0.0, 1.0]]), [0], [20])
    assert [token for token, _ in entry.top] == [1, 0]
