"""The plain sampler of the exercises draws what the engine draws; adapters chain the links."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from mini_engine.compute.plain_sampler import filter_logits, sample
from mini_engine.compute.sampler import Sampler
from mini_engine.compute.sampler_adapters import drawing_sampler, filtering_sampler
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
    if rng.random() < 0.3:
        params["presence_penalty"] = 0.7
        params["logit_bias"] = {3: 2.0}
    outputs = [rng.randrange(200) for _ in range(rng.randrange(4))]
    seed, choice = rng.randrange(2**63), rng.randrange(3)
    return Request("r", [1], SamplingParams(**params), seed=seed, choice=choice,
                   output_token_ids=outputs)  # fmt: skip


@pytest.mark.parametrize("size", [9, 200, 1000])
@pytest.mark.parametrize("make", [drawing_sampler(sample), filtering_sampler(filter_logits)])
def test_the_plain_sampler_draws_what_the_engine_draws(size: int, make: Any) -> None:
    rng, generator = random.Random(size), torch.Generator().manual_seed(size)
    for _ in range(20):
        requests = [some_request(rng) for _ in range(rng.randint(1, 9))]
        for request in requests:
            request.output_token_ids = [token % size for token in request.output_token_ids]
            request.token_ids = [1, *request.output_token_ids]
        logits = 2 * torch.randn(len(requests), size, generator=generator)
        before = logits.clone()
        assert make()(logits, requests) == Sampler()(logits, requests)
        assert torch.equal(logits, before)


def test_no_rows() -> None:
    assert sample(torch.zeros(0, 9), []) == []


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda logits, *numbers: 1.0, TypeError, "must return a Tensor, got float"),
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
