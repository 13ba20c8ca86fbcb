"""Owns the choice of the device: an explicit list, and a self-test before a GPU is trusted."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from mini_engine.config import DEVICES


def choose_device(name: str) -> torch.device:
    """The device that `name` ("auto", "cpu" or "cuda") stands for.

    "auto" is CUDA where it is there and computes correctly, else the CPU; other accelerators are
    never picked. Raises ValueError for another name, RuntimeError if "cuda" is asked for in vain.
    """
    if name not in DEVICES:
        raise ValueError(f"device must be one of {', '.join(DEVICES)}, got {name!r}")
    if name == "cpu":
        return torch.device("cpu")
    problem = cuda_problem()
    if problem is None:
        return torch.device("cuda", torch.cuda.current_device())
    if name == "cuda":
        raise RuntimeError(f"device 'cuda' can't be used: {problem}; use device 'cpu' or 'auto'")
    return torch.device("cpu")


def cuda_problem() -> str | None:
    """Why CUDA can't be used here, or None if it passed the self-test."""
    if not torch.backends.cuda.is_built():
        return f"this PyTorch ({torch.__version__}) is built without CUDA"
    if not torch.cuda.is_available():
        return "PyTorch finds no usable CUDA GPU or driver"
    try:
        expected, got = _self_test("cpu"), _self_test("cuda").cpu()
    except RuntimeError as error:
        return f"the self-test failed with {type(error).__name__}: {error}"
    difference = float((expected - got).abs().max())
    if not difference < 1e-2:  # also true for NaN
        return f"the self-test's result differs from the CPU's by {difference:.3g}"
    return None


def _self_test(device: str) -> torch.Tensor:
    """A matrix product, a gather and attention on fixed numbers: what the engine is made of."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(4, 8, 64, generator=generator).to(device)
    weight = torch.randn(64, 64, generator=generator).to(device) / 8
    rows = torch.tensor([3, 1, 0, 2], device=device)
    x = F.linear(x.index_select(0, rows), weight)[None]
    return F.scaled_dot_product_attention(x, x, x, is_causal=True)
