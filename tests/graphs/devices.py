"""Owns the list of devices that the tests of graphs run on: the emulator, and CUDA where it is."""

from __future__ import annotations

import pytest

from mini_engine.compute.device import cuda_problem

PROBLEM = cuda_problem()
CUDA = pytest.param(
    "cuda",
    marks=[pytest.mark.gpu, pytest.mark.skipif(PROBLEM is not None, reason=f"no GPU: {PROBLEM}")],
)
on_each_device = pytest.mark.parametrize("device", ["cpu", CUDA])
