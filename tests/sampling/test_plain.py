"""The plain sampler of the exercises draws what the engine draws; adapters chain the links."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from mini_engine.compute.plain_sampler import apply_penalties, filter_logits, sample
from mini_engine.compute.sampler import Sampler
from mini_engine.compute.sampler_adapters import (
    drawing_sampler,
    filtering_sampler,
    penalizing_sampler,
)
from mini_engine.control.request import Request
from mini_engine.sampling_params import SamplingParams


def some_request(rng: random.Random) -> Request:
    params: dict[str, Any] = {"temperature": rng.choice([0.0, 0.3, 1.0, 1.7])}
    if rng.random() < 0.5:
        params["top_k"] = rng.choice([-1, 1, 5, 150, 900])
    if rng.random() < 0.5:
        params["top_p"] = rng.choice([0.1, 0.5, 0.95, 0.999])
    if rng.random() < 0.4:
        params["min_p"] = rng.choice([0.001, 0.05, 0.3])
    for name in ("presence", "frequency", "repetition"):
        if rng.random() < 0.2:
            params[f"{name}_penalty"] = rng.choice([0.6, 1.3])
    if rng.random() < 0.2:
        params |= {"logit_bias": {3: 2.0}, "min_tokens": 3}
    outputs = [rng.randrange(200) for _ in range(rng.randrange(4))]
    seed, choice = rng.randrange(2**63), rng.randrange(3)
    return Request("r", [1, 5, 5], SamplingParams(**params), seed=seed, choice=choice,
                   output_token_ids=outputs, end_token_ids=frozenset([2]))  # fmt: skip


@pytest.mark.parametrize("size", [9, 200, 1000])
@pytest.mark.parametrize(
    "make",
    [
        drawing_sampler(sample),
        filtering_sampler(filter_logits),
        penalizing_sampler(apply_penalties, None),
        penalizing_sampler(apply_penalties, drawing_sampler(sample)),
    ],
    ids=["sample", "filter", "penalties", "penalties and sample"],
)
def test_the_plain_sampler_draws_what_the_engine_draws(size: int, make: Any) -> None:
    rng, generator = random.Random(size), torch.Generator().manual_seed(size)
    for _ in range(20):
        requests = [some_request(rng) for _ in range(rng.randint(1, 9))]
        for request in requests:
            request.output_token_ids = [token % size for token in request.output_token_ids]
            request.token_ids = [1, 5, 5, *request.output_token_ids]
        logits = 2 * torch.randn(len(requests), size, generator=generator)
        before = logits.clone()
        assert make()(logits, requests) == Sampler()(logits, requests)
        assert torch.equal(logits, before)


def test_no_rows() -> None:
    assert sample(torch.zeros(0, 9), []) == []


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda logits, *numbers: 1.0, TypeError, "must come back as a Tensor, got float"),
        (lambda logits, *numbers: logits[0], ValueError, r"shape \(1, 9\), got \(9,\)"),
    ],
)
def test_a_filter_that_gives_something_else_is_refused(
    wrong: Any, error: type[Exception], words: str
) -> None:
    request = Request("r", [1], SamplingParams(temperature=1.0))
    with pytest.raises(error, match=words):
        filtering_sampler(wrong)()(torch.zeros(1, 9), [request])


@pytest.mark.parametrize(
    ("tokens", "error", "words"),
    [
        (torch.tensor([1]), TypeError, "must return a list of ints, got Tensor"),
        ([torch.tensor(1), 2], TypeError, "got list of Tensor, int"),
        ([True], TypeError, "got list of bool"),
        ([9], ValueError, "the sampler chose 9 of 9 tokens"),
        ([-1], ValueError, "the sampler chose -1 of 9 tokens"),
    ],
)
def test_a_sampler_that_gives_something_else_is_refused(
    tokens: Any, error: type[Exception], words: str
) -> None:
    request = Request("r", [1], SamplingParams())
    with pytest.raises(error, match=words):
        drawing_sampler(lambda logits, requests: tokens)()(torch.zeros(1, 9), [request])


def test_penalties_on_top_leave_the_sampler_below_nothing_to_adjust() -> None:
    seen: list[Request] = []

    def below(logits: torch.Tensor, requests: Any) -> list[int]:
        seen.extend(requests)
        return Sampler()(logits, requests)

    asked = {"presence_penalty": 1.5, "logit_bias": {4: 9.0}, "min_tokens": 2}
    request = Request("r", [1], SamplingParams(**asked), output_token_ids=[4],
                      end_token_ids=frozenset([2]))  # fmt: skip
    logits = torch.tensor([[0.0, 0.0, 20.0, 0.0, 0.0]])
    tokens = penalizing_sampler(apply_penalties, lambda: below)()(logits, [request])
    assert tokens == Sampler()(logits, [request]) == [4], "2 would end it too early"
    params = seen[0].params
    assert (params.has_penalties, params.logit_bias, params.min_tokens) == (False, {}, 0)
    assert seen[0].output_token_ids is request.output_token_ids
    assert request.params.has_penalties, "the engine's own request stays as it was"
