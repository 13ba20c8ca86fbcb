"""Owns the rules that CUDA imposes on what happens during capture, and the message of a breach.

While a stream is captured, kernels are noted down and not run. So nothing may wait for a result,
no shape may follow from one, and nothing may be copied to or from pageable memory of the CPU.
"""

from __future__ import annotations

import linecache
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from mini_engine.compute.launches import name_of

WAITS = "it brings numbers to the CPU, which must wait for the GPU; during capture nothing runs"
SHAPE = "the shape of its result depends on numbers that are not computed yet during capture"
COPY = "it copies from the CPU's memory to the GPU, at capture only; fill a static buffer before"
GENERATOR = "its generator is not the default one, whose state the graph would not advance"

# Methods of tensors that never reach the dispatcher on a CPU, or arrive there under another name.
REFUSED_METHODS = {
    **dict.fromkeys(("item", "tolist", "numpy", "cpu", "__array__", "__repr__"), WAITS),
    **dict.fromkeys(("__bool__", "__int__", "__float__", "__index__", "__contains__"), WAITS),
    **dict.fromkeys(("new_tensor", "cuda", "pin_memory"), COPY),
}
INDEXING = ("index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index")
OWN_FILES = {
    str(Path(__file__).with_name(name))
    for name in ("graph_rules.py", "graph_emulator.py", "launches.py")
}
TORCH_FOLDER = str(Path(torch.__file__).parent)


class CaptureError(RuntimeError):
    """Something that CUDA refuses while a graph is captured; names the operation and the line."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what} can't be captured{user_line()}: {why}")


def user_line() -> str:
    """Where the caller's own code is: ' at FILE:LINE in FUNCTION (`source`)'."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file not in OWN_FILES and not file.startswith((TORCH_FOLDER, "<frozen")):
            source = linecache.getline(file, frame.f_lineno).strip()
            return f" at {file}:{frame.f_lineno} in {frame.f_code.co_name} (`{source}`)"
        frame = frame.f_back
    return ""


class MethodGuard(TorchFunctionMode):
    """While active, refuses the methods that a dispatcher would not see."""

    def __init__(self) -> None:
        super().__init__()
        self.breach: CaptureError | None = None

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in REFUSED_METHODS and args and isinstance(args[0], Tensor):
            self.breach = CaptureError(f"Tensor.{name}", REFUSED_METHODS[name])
        elif func in (torch.tensor, torch.as_tensor) and kwargs.get("device") is not None:
            self.breach = CaptureError(f"torch.{name}", COPY)
        if self.breach is not None:
            raise self.breach
        return func(*args, **kwargs)


def refusal(operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Why CUDA would refuse this ATen operation during capture, or None."""
    name = name_of(operation)
    if name in INDEXING:
        return _refused_index(name, args)
    if name == "repeat_interleave":
        return SHAPE if kwargs.get("output_size") is None else None
    if torch.Tag.data_dependent_output in operation.tags:
        return WAITS
    if torch.Tag.dynamic_output_shape in operation.tags:
        return SHAPE
    if name == "lift_fresh" and args[0].dim() > 0:
        return COPY  # torch.tensor([1, 2]), x[[0, 1]]; a single number is passed to the kernel
    if kwargs.get("generator") is not None:
        return GENERATOR
    return None


def _refused_index(name: str, args: tuple[Any, ...]) -> str | None:
    masks = [x for x in args[1] if x is not None and x.dtype in (torch.bool, torch.uint8)]
    if not masks:
        return None
    # x[mask] = 0 fills under the mask; every other mask is first turned into a list of places.
    fills = name != "index" and len(args[1]) == 1 and args[2].dim() == 0
    return None if fills else SHAPE
