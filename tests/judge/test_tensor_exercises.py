"""The judge's own arithmetic for tensors: oracles, tolerances, ties, workloads, imports."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from judge import attention_cases, tensor_checks, tensor_compare, wire
from judge.api import Case, Context
from judge.engine_report import close_tokens
from judge.exercises import find
from judge.exercises.kv_cache_attention import make
from judge.exercises.kv_cache_generate import work_lines
from judge.tensor_calls import WatchedModel, call, token_rows
from mini_engine.compute.attention_single import attention_over_contiguous
from mini_engine.compute.random_model import TINY_LLAMA, random_model

ROOT = Path(__file__).resolve().parents[2]
TENSOR = (
    "kv-cache.rope",
    "kv-cache.attention",
    "paged-kv.paged-attention",
    "batching.varlen-attention",
)


def answer(case: Case, function: object) -> object:
    payload = wire.copy(case.payload, wire.torch_tensor)
    return wire.copy(call({case.payload["function"]: function}, payload, Context()))


def test_bfloat16_rounds_like_torch() -> None:
    numbers = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    numbers = np.append(numbers, np.float32([1.00390625, 1.01171875, 0.0, -2.5]))  # two ties
    packed = tensor_compare.bfloat16(numbers)
    assert packed.data == wire.copy(torch.tensor(numbers).bfloat16()).data


@pytest.mark.parametrize("name", TENSOR)
def test_the_oracle_needs_nothing_of_the_reference_and_agrees_with_it(name: str) -> None:
    exercise = find(name)[0]
    reference = {s: getattr(__import__(exercise.reference, fromlist=[s]), s)
                 for s in exercise.symbols}  # fmt: skip
    for check in exercise.details().checks:
        if check.needs or check.name == "refuses":
            continue
        for case in check.cases(random.Random(1)):
            got = answer(case, reference[case.payload["function"]])
            assert check.compare(case, got, got) is None, (check.name, case.label)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_tolerance_is_wider_than_rounding_and_narrower_than_a_mistake(dtype: str) -> None:
    case = make("", attention_cases.draw(random.Random(3), 4, 12, 4, 2, 32))
    if dtype == "bfloat16":
        args = case.payload["args"]
        case.payload["args"] = [*map(tensor_compare.bfloat16, args[:3]), args[3]]
    truth = tensor_compare.attention_oracle(case.payload)
    step = 2 * tensor_compare.ROUNDING[dtype]
    assert (truth.allowed > step * abs(truth.numbers)).all()
    spread = np.abs(truth.numbers).mean()
    assert truth.allowed.mean() < (0.25 if dtype == "bfloat16" else 1e-4) * spread


def test_a_wrong_tensor_is_described_shape_dtype_and_place() -> None:
    case = make("", attention_cases.draw(random.Random(3), 4, 12, 4, 2, 8))
    check = next(c for c in find("kv-cache.attention")[0].details().checks if c.name == "random")
    right = answer(case, attention_over_contiguous)

    def lines(function: object) -> str:
        found = check.compare(case, right, answer(case, function))
        assert found is not None
        return "\n".join(found.lines)

    def one_head(*args: object) -> torch.Tensor:
        out = attention_over_contiguous(*args)
        out[2:, 1] += 1
        return out

    assert "the shape is [4, 4, 4], expected [4, 4, 8]" in lines(
        lambda *args: attention_over_contiguous(*args)[..., :4]
    )
    assert "the dtype is float64" in lines(lambda *args: attention_over_contiguous(*args).double())
    described = lines(one_head)
    assert "first wrong at [2, 1, 0] (query 2, head 1, number 0)" in described
    assert "queries 2-3 of 4; head 1 of 4; all 8 numbers (counted from 0)" in described
    assert "NaN" in lines(lambda *args: attention_over_contiguous(*args) * torch.nan)

    def spoils(query: torch.Tensor, *args: object) -> torch.Tensor:
        out = attention_over_contiguous(query, *args)
        query.zero_()
        return out

    assert "changed its argument query" in lines(spoils)


def test_only_a_near_tie_of_the_reference_excuses_a_token() -> None:
    tops = [[7, 9], [3.0, 1.0]], [[7, 9], [3.0, 2.9999]]
    clear, tied = (close_tokens(top, tensor_checks.TIE) for top in tops)
    assert tensor_checks.first_difference([7, 8], [7, 8], [clear, clear]) is None
    assert tensor_checks.first_difference([7, 8], [7, 9], [clear, clear]) == 1
    assert tensor_checks.first_difference([7, 8], [9, 1], [tied, clear]) is None
    assert tensor_checks.first_difference([7, 8], [3, 1], [tied, clear]) == 0
    assert tensor_checks.first_difference([7, 8], [7], [tied, tied]) == 1
    assert tensor_checks.first_difference([7], [7, 8], [clear]) == 1


@pytest.mark.parametrize("seed", range(5))
def test_workloads_have_chunks_a_preemption_and_a_prefix_hit(seed: int) -> None:
    check = tensor_checks.tiny_check("llama", "qwen3")
    for case in check.cases(random.Random(seed)):
        assert all(tensor_checks.events(case.payload).values())


def test_the_watched_model_refuses_what_would_fail_deep_inside() -> None:
    model = WatchedModel(random_model(TINY_LLAMA, 0), 2, object())
    ids = torch.tensor([1, 2])
    with pytest.raises(TypeError, match="token_ids as a tensor, got list"):
        model([1, 2], ids, None)
    with pytest.raises(ValueError, match="each token has one position"):
        model(ids, torch.tensor([0]), None)
    with pytest.raises(ValueError, match="the query's shape"):
        model(ids, ids, lambda layer, query, key, value: value)

    def attend(layer: int, query: torch.Tensor, key: object, value: object) -> torch.Tensor:
        return query

    model(ids, ids, attend)
    with pytest.raises(RuntimeError, match="forward pass 3"):
        model(ids, ids, attend)


def test_tokens_are_counted_wherever_the_model_is_called() -> None:
    model = random_model(TINY_LLAMA, 0)
    ids = torch.tensor([1, 2, 3])

    def attend(layer: int, query: torch.Tensor, key: object, value: object) -> torch.Tensor:
        return query

    with token_rows(model.config) as rows:
        model(ids, ids, attend)
        assert rows() == 3
        thread = threading.Thread(target=model.forward, args=(ids[:2], ids[:2], attend))
        thread.start()
        thread.join()
        assert rows() == 5
    model(ids, ids, attend)
    assert rows() == 5


def test_work_is_described_by_position() -> None:
    made = {"prompt": [5, 6]}
    once = [[5, 0], [6, 1], [7, 2]]
    assert work_lines(made, {"tokens": [7, 8], "computed": once}) == []
    assert "position 0 was computed, expected 2" in work_lines(
        made, {"tokens": [7, 8], "computed": [*once[:2], [7, 0]]}
    )[0]  # fmt: skip
    assert "4 tokens were computed, expected 3" in work_lines(
        made, {"tokens": [7, 8], "computed": [*once, [8, 3]]}
    )[0]  # fmt: skip


@pytest.mark.parametrize(
    "code",
    [
        "import runpy; runpy.run_path('practice/paged_kv.py')",
        "import runpy; runpy.run_path('practice/batching.py')",
        "import mini_engine.compute.rows",
        "import mini_engine.compute.slots",
        "from judge.exercises import EXERCISES; [e.details() for e in EXERCISES]",
    ],
)
def test_bookkeeping_and_the_judge_itself_load_no_torch(code: str) -> None:
    program = f"{code}; import sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, timeout=60)
