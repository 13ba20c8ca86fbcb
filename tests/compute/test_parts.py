"""Sampler, sizes of the cache, choice of the device, and what importing costs."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from mini_engine.compute import device as device_module
from mini_engine.compute import kv_cache as kv_cache_module
from mini_engine.compute.device import choose_device
from mini_engine.compute.kv_cache import PagedKVCache, available_memory, choose_num_blocks
from mini_engine.compute.random_model import SMOLLM2_135M, TINY_LLAMA
from mini_engine.compute.sampler import Sampler
from mini_engine.config import EngineConfig
from mini_engine.control.request import Request

GIB = 1024**3


def requests(count: int) -> list[Request]:
    return [Request(f"r{i}", [1]) for i in range(count)]


def test_greedy_takes_the_maximum_and_of_equals_the_lowest_id() -> None:
    logits = torch.tensor([[0.0, 3.0, 3.0, 1.0], [2.0, -1.0, 2.0, 2.0], [-4.0, -3.0, -2.0, -2.0]])
    assert Sampler()(logits, requests(3)) == [1, 0, 2]


def test_greedy_ties_in_a_large_vocabulary() -> None:
    """Rows long enough for vectorized and threaded kernels."""
    logits = torch.zeros(5, 49152)
    assert Sampler()(logits, requests(5)) == [0] * 5
    logits[2, 40000] = logits[2, 31] = 1.0
    assert Sampler()(logits, requests(5)) == [0, 0, 31, 0, 0]


@pytest.mark.parametrize("place", [0, 17, 49151])
def test_nan_names_the_request(place: int) -> None:
    logits = torch.randn(3, 49152, generator=torch.Generator().manual_seed(0))
    logits[1, place] = float("nan")
    with pytest.raises(ValueError, match="'r1' hold NaN"):
        Sampler()(logits, requests(3))


def test_rows_and_requests_must_agree() -> None:
    with pytest.raises(ValueError, match="3 rows of logits for 2 requests"):
        Sampler()(torch.zeros(3, 4), requests(2))
    assert Sampler()(torch.zeros(0, 4), []) == []


def test_a_cache_too_large_names_the_numbers_and_the_knob() -> None:
    with pytest.raises(MemoryError, match=r"100000000000 blocks of 16.*GiB.*num_blocks"):
        PagedKVCache(TINY_LLAMA, 100_000_000_000, 16)


def test_num_blocks_given_is_kept() -> None:
    assert choose_num_blocks(SMOLLM2_135M, EngineConfig(num_blocks=7), "cpu") == 7


def test_num_blocks_chosen_never_exceeds_what_all_requests_need() -> None:
    config = EngineConfig(max_num_seqs=2, max_model_len=33, block_size=16)
    assert choose_num_blocks(TINY_LLAMA, config, "cpu") == 6


def test_num_blocks_chosen_stays_within_a_share_of_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    per_block = 16 * SMOLLM2_135M.kv_bytes_per_token(4)
    monkeypatch.setattr(kv_cache_module, "available_memory", lambda: 64 * GIB)
    assert choose_num_blocks(SMOLLM2_135M, EngineConfig(), "cpu") == GIB // per_block
    monkeypatch.setattr(kv_cache_module, "available_memory", lambda: GIB)
    assert choose_num_blocks(SMOLLM2_135M, EngineConfig(), "cpu") == GIB // 4 // per_block
    half = choose_num_blocks(SMOLLM2_135M, EngineConfig(), "cpu", torch.bfloat16)
    assert half == GIB // 4 // (per_block // 2)
    monkeypatch.setattr(kv_cache_module, "available_memory", lambda: None)
    assert choose_num_blocks(SMOLLM2_135M, EngineConfig(), "cpu") == GIB // per_block


@pytest.mark.parametrize("available", [0, 1000])
def test_no_room_for_a_block_is_an_error_with_numbers_never_a_negative_count(
    monkeypatch: pytest.MonkeyPatch, available: int
) -> None:
    monkeypatch.setattr(kv_cache_module, "available_memory", lambda: available)
    with pytest.raises(MemoryError, match=r"one block of 16 tokens needs 0.70 MiB.*num_blocks"):
        choose_num_blocks(SMOLLM2_135M, EngineConfig(), "cpu")


def test_num_blocks_on_cuda_uses_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The arithmetic only: no GPU is asked."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (10 * GIB, 24 * GIB))
    per_block = 16 * SMOLLM2_135M.kv_bytes_per_token(2)
    chosen = choose_num_blocks(SMOLLM2_135M, EngineConfig(), "cuda", torch.bfloat16)
    assert chosen == int(10 * GIB * 0.8) // per_block
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (0, 24 * GIB))
    with pytest.raises(MemoryError, match=r"0.00 of 24.00 GiB are free.*num_blocks"):
        choose_num_blocks(SMOLLM2_135M, EngineConfig(), "cuda", torch.bfloat16)


def test_available_memory_is_plausible_or_unknown() -> None:
    memory = available_memory()
    assert memory is None or 2**20 < memory < 2**50


def test_the_cpu_is_always_there_and_other_names_are_refused() -> None:
    assert choose_device("cpu") == torch.device("cpu")
    with pytest.raises(ValueError, match="auto, cpu, cuda"):
        choose_device("mps")


def fake_cuda(monkeypatch: pytest.MonkeyPatch, self_test: object) -> None:
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(device_module, "_self_test", self_test)


def test_auto_takes_a_gpu_that_computes_correctly(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cuda(monkeypatch, lambda device: torch.ones(3))
    assert choose_device("auto") == torch.device("cuda", 0)


@pytest.mark.parametrize("wrong", [2.0, float("nan")])
def test_auto_leaves_a_gpu_that_computes_wrongly(
    monkeypatch: pytest.MonkeyPatch, wrong: float
) -> None:
    fake_cuda(monkeypatch, lambda device: torch.full((3,), 1.0 if device == "cpu" else wrong))
    assert choose_device("auto") == torch.device("cpu")
    with pytest.raises(RuntimeError, match="self-test's result differs"):
        choose_device("cuda")


def test_a_gpu_that_raises_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def self_test(device: str) -> torch.Tensor:
        if device == "cuda":
            raise RuntimeError("no kernel image")
        return torch.ones(3)

    fake_cuda(monkeypatch, self_test)
    with pytest.raises(RuntimeError, match="no kernel image"):
        choose_device("cuda")


def test_cuda_without_a_gpu_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RuntimeError, match=r"'cuda' can't be used: .*use device 'cpu'"):
        choose_device("cuda")
    assert choose_device("auto") == torch.device("cpu")


def test_the_self_test_runs_and_depends_on_its_numbers() -> None:
    out = device_module._self_test("cpu")
    assert out.shape == (1, 4, 8, 64)
    assert out.std() > 0.1


def test_importing_the_data_plane_touches_no_gpu_and_no_kernels() -> None:
    """In a fresh process: neither triton nor flash-attn nor a CUDA context."""
    script = (
        "import sys, torch, mini_engine.compute.runner, mini_engine.compute.attention, "
        "mini_engine.compute.adapters, mini_engine.compute.device\n"
        "print(torch.cuda.is_initialized(), 'flash_attn' in sys.modules, 'vllm' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.split() == ["False"] * 3
