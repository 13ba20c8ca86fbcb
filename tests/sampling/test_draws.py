"""Random draws: SEMANTICS 35 and 36, and the numbers behind them."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from mini_engine.compute.noise import draw_keys, gumbel
from mini_engine.compute.sampler import Sampler
from mini_engine.control.request import Request
from mini_engine.sampling_params import SamplingParams

CPU = torch.device("cpu")


def request(name: str, seed: int = 0, outputs: int = 0, choice: int = 0, **fields: Any) -> Request:
    params = SamplingParams(**{"temperature": 1.0, **fields})
    return Request(name, [1], params, seed=seed, choice=choice, output_token_ids=[0] * outputs)


def many(count: int, **fields: Any) -> list[Request]:
    """The same request with other seeds: every draw is another one."""
    first = fields.pop("seed", 0) * count
    return [request(f"r{index}", seed=first + index, **fields) for index in range(count)]


def shares(logits: list[float], count: int, **fields: Any) -> list[float]:
    rows = torch.tensor([logits]).expand(count, -1)
    drawn = torch.tensor(Sampler()(rows, many(count, **fields)))
    return (torch.bincount(drawn, minlength=len(logits)) / count).tolist()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, [0.643914, 0.236883, 0.087144, 0.032059]),
        ({"top_p": 0.8}, [0.731059, 0.268941, 0, 0]),
        ({"top_k": 3}, [0.665241, 0.244728, 0.090031, 0]),
        ({"temperature": 2.0}, [0.455, 0.276, 0.167, 0.102]),
        ({"temperature": 0.5, "min_p": 0.1}, [0.880797, 0.119203, 0, 0]),
    ],
)
def test_case_36_draws_follow_the_masked_distribution(
    fields: dict[str, float], expected: list[float]
) -> None:
    count = 20_000
    found = shares([2.0, 1.0, 0.0, -1.0], count, seed=7, **fields)
    for share, probability in zip(found, expected, strict=True):
        sigma = math.sqrt(probability * (1 - probability) / count)
        assert abs(share - probability) <= 4 * sigma + 5e-4  # the last: expected is rounded
        assert probability > 0 or share == 0


@pytest.mark.parametrize("size", [50, 128, 129, 700])
def test_case_36_a_large_vocabulary(size: int) -> None:
    """With all tokens free, and with filters that keep more than the few that are sorted first."""
    generator = torch.Generator().manual_seed(size)
    logits = torch.randn(size, generator=generator)
    count = 20_000
    for fields, allowed in (({}, size), ({"top_k": size - 3}, size - 3)):
        top = logits.topk(allowed).values[-1]
        masked = logits.masked_fill(logits < top, -torch.inf)
        expected = masked.softmax(-1)
        found = torch.tensor(shares(logits.tolist(), count, seed=size, **fields))
        sigma = (expected * (1 - expected) / count).sqrt()
        beyond = (found - expected).abs() > 4 * sigma + 1e-9
        assert int(beyond.sum()) <= max(1, size // 500)  # 4 sigma: one in 16,000
        assert found[masked.isinf()].sum() == 0


def logits_of(rows: list[Request], size: int = 1000) -> Tensor:
    """Logits that belong to a request, not to its place in the batch."""
    made = [
        torch.randn(size, generator=torch.Generator().manual_seed(int(r.request_id))) for r in rows
    ]
    return torch.stack(made)


def test_case_35_the_same_token_alone_and_in_any_batch() -> None:
    kinds: list[dict[str, Any]] = [
        {}, {"top_p": 0.9}, {"top_k": 5}, {"temperature": 0.0}, {"min_p": 0.05, "top_p": 0.99},
        {"top_k": 700}, {"temperature": 0.0, "presence_penalty": 1.0},
        {"logit_bias": {4: 3.0}},
    ]  # fmt: skip
    rows = [request(str(i), seed=i % 3, outputs=i, **kind) for i, kind in enumerate(kinds)]
    logits = logits_of(rows)
    alone = [Sampler()(logits[i : i + 1], [row])[0] for i, row in enumerate(rows)]
    for size in (2, 5, 8):
        for start in range(0, len(rows) - size + 1):
            chosen = slice(start, start + size)
            assert Sampler()(logits[chosen], rows[chosen]) == alone[chosen]
    order = [5, 2, 7, 0, 1, 6, 3, 4]
    assert Sampler()(logits[order], [rows[i] for i in order]) == [alone[i] for i in order]


def test_case_35_seed_choice_and_output_number_each_make_other_draws() -> None:
    logits = torch.zeros(1, 5000)

    def drawn(**place: Any) -> int:
        return Sampler()(logits, [request("r", **place)])[0]

    base = {"seed": 1, "outputs": 2, "choice": 3}
    assert drawn(**base) == drawn(**base)
    others = [{**base, "seed": 2}, {**base, "outputs": 3}, {**base, "choice": 4}]
    assert drawn(**base) not in [drawn(**other) for other in others]
    assert drawn(seed=-1) != drawn(seed=1)


def test_case_35_greedy_rows_beside_random_ones_are_exact() -> None:
    logits = torch.zeros(4, 300)
    logits[:, 7] = logits[:, 9] = 1.0
    rows = [request(str(i), temperature=0.0 if i % 2 else 5.0) for i in range(4)]
    chosen = Sampler()(logits, rows)
    assert chosen[1] == chosen[3] == 7


def test_the_logits_stay_as_they_were() -> None:
    logits = torch.randn(3, 200, generator=torch.Generator().manual_seed(0))
    before = logits.clone()
    rows = [request("a", top_p=0.5), request("b", logit_bias={1: 5.0}), request("c", temperature=0)]
    Sampler()(logits, rows)
    assert torch.equal(logits, before)


def test_the_smallest_temperature_is_nearly_greedy_and_never_overflows() -> None:
    logits = torch.tensor([[30.0, 29.0, -300.0]])
    for temperature in (1e-3, 1e-30, 5e-324):
        assert Sampler()(logits, [request("r", temperature=temperature)]) == [0]


def test_a_token_whose_logit_is_minus_infinity_is_never_drawn() -> None:
    logits = torch.full((500, 200), -torch.inf)
    logits[:, 13] = 0.0
    for fields in ({}, {"top_p": 0.9}, {"top_k": 50}, {"top_k": 150}):
        assert set(Sampler()(logits, many(500, **fields))) == {13}


def test_noise_is_gumbel_finite_and_the_same_for_any_set_of_tokens() -> None:
    keys = draw_keys(many(40), CPU)
    ids = torch.arange(20_000)[None]
    noise = gumbel(keys, ids).double()
    assert noise.isfinite().all()
    euler = 0.5772156649
    assert float(noise.mean()) == pytest.approx(euler, abs=0.01)
    assert float(noise.var()) == pytest.approx(math.pi**2 / 6, abs=0.02)
    few = torch.tensor([[19_999, 3, 500]]).expand(40, -1)
    assert torch.equal(gumbel(keys, few), gumbel(keys, ids)[:, [19_999, 3, 500]])
    rows = torch.corrcoef(noise[:8])
    assert float((rows - torch.eye(8)).abs().max()) < 0.03  # draws know nothing of each other


def test_the_noise_of_the_outermost_keys_is_finite() -> None:
    ends = [[0, 0], [-1, -1], [2**31 - 1, -(2**31)], [-(2**31), 1]]
    keys = torch.tensor(ends, dtype=torch.int32)
    assert gumbel(keys, torch.arange(200_000)[None]).isfinite().all()
