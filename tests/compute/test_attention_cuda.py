"""The fast path on CUDA: never trusted untested, and equal to the baseline where it is used."""

from __future__ import annotations

import sys
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from mini_engine.compute.attention import PagedAttention
from mini_engine.compute.attention_cuda import VarlenPath, find_varlen_path, self_test
from mini_engine.compute.attention_single import paged_attention
from mini_engine.compute.device import cuda_problem
from mini_engine.compute.random_model import SMOLLM2_135M, TINY_LLAMA, random_model
from mini_engine.interfaces import Batch
from tests.compute.harness import Bench, alone, random_prompt

CPU = torch.device("cpu")
needs_gpu = pytest.mark.skipif(cuda_problem() is not None, reason=f"no GPU: {cuda_problem()}")
SCALE = TINY_LLAMA.head_dim**-0.5


def baseline(query: Tensor, keys: Tensor, values: Tensor, batch: Batch) -> Tensor:
    attention = PagedAttention(TINY_LLAMA, query.device)
    attention.no_fast_path = "not wanted here"
    return attention(query, keys, values, attention.plan(batch))


def varlen_on_cpu(
    query, keys, values, starts, key_starts, most_queries, most_keys, **options
) -> Tensor:
    """What varlen_attn is documented to compute, request by request."""
    assert options["window_size"] == (-1, 0)
    assert starts.dtype == options["seqused_k"].dtype == options["block_table"].dtype == torch.int32
    bounds, lens = starts.tolist(), options["seqused_k"].tolist()
    assert most_keys == max(lens)
    assert most_queries == max(b - a for a, b in pairwise(bounds))
    parts = [
        paged_attention(query[a:b], keys, values, table, length, options["scale"])
        for (a, b), table, length in zip(
            pairwise(bounds), options["block_table"].tolist(), lens, strict=True
        )
    ]
    return torch.cat(parts)


def test_on_a_cpu_there_is_no_fast_path_and_the_reason_says_so() -> None:
    path, reason = find_varlen_path(TINY_LLAMA, 16, torch.bfloat16, CPU, baseline)
    assert path is None
    assert "CUDA only" in reason
    bench = Bench(random_model(TINY_LLAMA, 4))
    bench.generate([[1, 2, 3]], 2)
    assert "CUDA only" in bench.runner.attention.no_fast_path


def test_float32_is_refused_before_any_kernel_runs() -> None:
    _, reason = find_varlen_path(TINY_LLAMA, 16, torch.float32, torch.device("cuda"), baseline)
    assert "float32" in reason


def test_an_older_pytorch_without_the_function_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.nn.attention.varlen", None)
    _, reason = find_varlen_path(TINY_LLAMA, 16, torch.bfloat16, torch.device("cuda"), baseline)
    assert "has no varlen_attn" in reason


@pytest.mark.parametrize("key_starts", [True, False])
@pytest.mark.parametrize("block_size", [4, 16])
def test_a_kernel_that_does_what_is_documented_passes(key_starts: bool, block_size: int) -> None:
    path = VarlenPath(varlen_on_cpu, key_starts, SCALE)
    assert self_test(path, TINY_LLAMA, block_size, torch.float32, CPU, baseline) is None


def test_a_kernel_that_computes_wrongly_or_raises_does_not_pass() -> None:
    def wrong(*args, **options) -> Tensor:
        return varlen_on_cpu(*args, **{**options, "scale": options["scale"] * 1.5})

    def nan(query, *args, **options) -> Tensor:
        return torch.full_like(query, float("nan"))

    def old(query, key, value) -> Tensor:
        return query

    for kernel, message in ((wrong, "differs"), (nan, "differs"), (old, "TypeError")):
        path = VarlenPath(kernel, False, SCALE)
        problem = self_test(path, TINY_LLAMA, 4, torch.float32, CPU, baseline)
        assert problem is not None
        assert message in problem


def test_a_path_that_passed_gives_the_engine_s_tokens() -> None:
    """The wiring, with the kernel played by its definition."""
    model = random_model(TINY_LLAMA, 4)
    prompts = [random_prompt(seed, length) for seed, length in enumerate([1, 4, 17, 40])]
    attention = PagedAttention(TINY_LLAMA)
    attention._varlen, attention.no_fast_path = VarlenPath(varlen_on_cpu, True, SCALE), ""
    bench = Bench(model, attention=attention)
    assert bench.generate(prompts, 8, 7) == [alone(model, prompt, 8) for prompt in prompts]


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("block_size", [16, 256])
def test_gpu_tokens_equal_the_cpu_s(block_size: int) -> None:
    """float32, so the baseline: fixed-width gather and SDPA."""
    prompts = [random_prompt(seed, length) for seed, length in enumerate([1, 15, 16, 17, 40])]
    expected = [alone(random_model(TINY_LLAMA, 4), prompt, 12) for prompt in prompts]
    bench = Bench(random_model(TINY_LLAMA, 4, device="cuda"), block_size)
    assert bench.generate(prompts, 12, 7) == expected


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("block_size", [16, 256])
def test_gpu_bfloat16_fast_path_stays_close_to_the_baseline(block_size: int) -> None:
    """Where there is no fast path the two are the same; the reason is printed (-rP)."""
    model = random_model(SMOLLM2_135M, 0, "cuda", torch.bfloat16)
    prompt = random_prompt(0, 300)
    logits = []
    for fast in (True, False):
        attention = PagedAttention(SMOLLM2_135M, "cuda")
        if not fast:
            attention.no_fast_path = "not wanted here"
        bench = Bench(model, block_size, attention=attention)
        bench.generate([prompt], 1)
        print("no fast path:", attention.no_fast_path or "(used)")
        logits.append(bench.logits[0])
    assert (logits[0] - logits[1]).abs().max() < 1.0
