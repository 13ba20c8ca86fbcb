"""The sampler's short cuts draw the token of the definition: filter all, add noise, argmax."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mini_engine.compute.filters import Filters, best_tokens, first_best, keeps, lowest_of_sorted
from mini_engine.compute.noise import draw_keys, gumbel
from mini_engine.compute.sampler import draw
from mini_engine.control.request import Request
from tests.sampling.test_draws import CPU, many

# 16,384 and more: best_tokens looks at the buckets' maxima first.
SIZES = st.sampled_from([7, 129, 1000, 16_383, 16_384, 20_480])


def plain_draw(logits: Tensor, requests: list[Request]) -> list[int]:
    """Row by row, over the whole vocabulary, with filters that sort everything."""
    found = []
    for row, request in zip(logits, requests, strict=True):
        scaled = ((row - row.max()) / request.params.temperature)[None]
        filters = Filters.of([request.params], len(row), CPU)
        lowest = lowest_of_sorted(scaled, filters, width=len(row))
        scaled = scaled.masked_fill(scaled < lowest[:, None], -torch.inf)
        noise = gumbel(draw_keys([request], CPU), torch.arange(len(row))[None])
        found.append(int((scaled + noise).argmax()))
    return found


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    size=SIZES,
    spread=st.sampled_from([0.05, 1.0, 5.0]),
    rows=st.lists(
        st.fixed_dictionaries(
            {
                "temperature": st.sampled_from([0.2, 1.0, 3.0]),
                "top_k": st.sampled_from([0, 1, 100, 129, 900]),
                "top_p": st.sampled_from([1.0, 0.05, 0.5, 0.95]),
                "min_p": st.sampled_from([0.0, 0.001, 0.2]),
            }
        ),
        min_size=1,
        max_size=6,
    ),
)
def test_the_draw_of_the_definition(
    seed: int, size: int, spread: float, rows: list[dict[str, float]]
) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(len(rows), size, generator=generator)
    requests = [
        request
        for number, fields in enumerate(rows)
        for request in many(1, seed=seed + number, **fields)
    ]
    assert draw(logits, requests).tolist() == plain_draw(logits, requests)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    size=st.sampled_from([16_384, 16_416, 20_480, 49_152]),
    count=st.sampled_from([1, 64, 128]),
)
def test_the_best_tokens_are_those_of_topk(seed: int, size: int, count: int) -> None:
    logits = torch.randn(3, size, generator=torch.Generator().manual_seed(seed))
    best, ids = best_tokens(logits, count)
    expected = logits.topk(count, dim=-1)
    assert torch.equal(best, expected.values)
    assert torch.equal(logits.gather(-1, ids), best)
    assert all(len(set(row)) == count for row in ids.tolist())


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), size=st.sampled_from([1, 31, 32, 96, 1024]))
def test_the_first_best_of_many_equals(seed: int, size: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randint(0, 3, (4, size), generator=generator).float()
    assert torch.equal(first_best(logits), logits.argmax(-1))


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    top_k=st.sampled_from([0, 1, 40, 900]),
    top_p=st.sampled_from([1.0, 0.05, 0.5, 0.95]),
    min_p=st.sampled_from([0.0, 0.001, 0.2]),
)
def test_what_is_surely_kept_is_kept(seed: int, top_k: int, top_p: float, min_p: float) -> None:
    logits = torch.randn(1, 1000, generator=torch.Generator().manual_seed(seed))
    params = many(1, top_k=top_k, top_p=top_p, min_p=min_p)[0].params
    filters = Filters.of([params] * 1000, 1000, CPU)
    rows = logits.expand(1000, -1)
    sure = keeps(rows, filters, torch.arange(1000))
    kept = logits[0] >= lowest_of_sorted(logits, filters.rows(torch.tensor([0])), width=1000)
    assert not (sure & ~kept).any()
    if top_p == 1 or (min_p == 0 and top_k == 0):
        assert torch.equal(sure, kept)


def test_noise_of_neighbours_is_independent() -> None:
    """Of tokens side by side, of outputs side by side: one in ten is among the largest tenth."""
    keys = torch.cat([draw_keys(many(1, outputs=output), CPU) for output in range(400)])
    large = gumbel(keys, torch.arange(1000)[None]) > 2.2504  # P(gumbel > 2.2504) = 0.1
    for pair in (
        large[:, 1:] & large[:, :-1],
        large[:, 32:] & large[:, :-32],
        large[1:] & large[:-1],
        large[1:, 1:] & large[:-1, :-1],
    ):
        sigma = (0.01 * 0.99 / pair.numel()) ** 0.5
        assert abs(pair.float().mean().item() - 0.01) < 5 * sigma
    assert abs(large.float().mean().item() - 0.1) < 5 * (0.09 / large.numel()) ** 0.5
    per_token = large.sum(0).float()
    assert (per_token - 40).abs().max() < 6 * 6  # sigma of 400 draws is 6
