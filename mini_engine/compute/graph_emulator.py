"""Owns the graph for machines without a GPU: records a decode step and replays it as CUDA would.

It keeps the rules and the surprises of a CUDA graph, and is not faster than running the step. What
it can't know: on a CPU, memory of the host and of the device look alike, so a copy between existing
tensors is never refused.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map

from mini_engine.compute.graph_rules import CaptureError, MethodGuard, refusal, user_line
from mini_engine.compute.launches import (
    ALLOCATIONS,
    OperationWatch,
    changes_memory,
    name_of,
    storages,
)


@dataclass(frozen=True)
class Recorded:
    """One operation with the very arguments and results that it had: numbers and addresses."""

    operation: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    results: tuple[Tensor, ...]  # those in memory of the graph's own; empty if it wrote elsewhere

    def run(self) -> None:
        """The same again, into the same memory."""
        if name_of(self.operation) in ALLOCATIONS:
            _poison(self.results)  # it holds what others left there
            return
        again = self.operation(*self.args, **self.kwargs)
        if self.results:
            fresh = [leaf for leaf in tree_leaves(again) if isinstance(leaf, Tensor)]
            for result, value in zip(self.results, fresh, strict=True):
                result.copy_(value)


def _poison(tensors: tuple[Tensor, ...] | list[Tensor]) -> None:
    """NaN, or the smallest integer: what nobody may read must not look like an answer."""
    for tensor in tensors:
        if tensor.is_floating_point():
            tensor.fill_(torch.nan)
        elif tensor.dtype != torch.bool:
            tensor.fill_(torch.iinfo(tensor.dtype).min)


@dataclass
class Input:
    """Memory from outside that a graph uses, and who used it first.

    On a GPU a graph knows addresses only: a tensor that nobody else holds is gone, and its memory
    another's. So the recording keeps tensors of its own over the memory, and counts them.
    """

    tensor: Tensor
    where: str
    holders: int = 0

    def is_freed(self, by_looking: int) -> bool:
        """Whether the recording alone holds the memory."""
        return _holders(self.tensor) <= self.holders + by_looking


def _holders(tensor: Tensor) -> int:
    return int(torch._C._storage_Use_Count(tensor.untyped_storage()._cdata))


@dataclass
class EmulatedPool:
    """Memory that graphs share: a replay may overwrite whatever another graph of the pool made."""

    last: EmulatedGraph | None = None


class _Recording(OperationWatch):
    """The operations between `capture_begin` and `capture_end`."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[Recorded] = []
        self.own: dict[int, Tensor] = {}  # memory that was made during capture
        self.inputs: dict[int, Input] = {}  # memory that was there before
        self.guard = MethodGuard()
        self.active = ExitStack()

    def saw(self, operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Note the operation down, if CUDA could."""
        why = refusal(operation, args, kwargs)
        if why is not None:
            self.guard.breach = CaptureError(name_of(operation), why)
        if self.guard.breach is not None:
            raise self.guard.breach
        if changes_memory(operation):
            self._note(operation, args, kwargs, ())
            return self._write(operation, args, kwargs)
        result = operation(*args, **kwargs)
        before = storages((args, kwargs))
        fresh = {key: x for key, x in storages(result).items() if key not in before}
        if fresh:
            self.own |= fresh
            results = tuple(leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor))
            self._note(operation, args, kwargs, results)
            if name_of(operation) in ALLOCATIONS:
                _poison(results)
        return result

    def _note(
        self,
        operation: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        results: tuple[Tensor, ...],
    ) -> None:
        """Keep the operation, with other tensors over the same memory for those from outside."""

        def kept(leaf: Any) -> Any:
            # A single number may be one of the CPU's, which CUDA hands to the kernel by value.
            if not isinstance(leaf, Tensor) or leaf.dim() == 0:
                return leaf
            key = leaf.untyped_storage()._cdata
            if key in self.own:
                return leaf
            leaf = torch.ops.aten.alias.default(leaf)
            if key not in self.inputs:
                where = f"{list(leaf.shape)}, used by {name_of(operation)}{user_line()}"
                self.inputs[key] = Input(leaf, where)
            self.inputs[key].holders += 1
            return leaf

        kept_args, kept_kwargs = tree_map(kept, (args, kwargs))
        self.operations.append(Recorded(operation, kept_args, kept_kwargs, results))

    def _write(self, operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Capture runs nothing, so memory from outside keeps its contents.

        The graph's own memory is written all the same: nobody may read it before a replay, and
        indices made in it must be valid for the shapes of later results to be found out.
        """
        schema = operation._schema
        names = [argument.name for argument in schema.arguments]
        given = dict(zip(names, args, strict=False)) | kwargs
        written = [
            given[argument.name]
            for argument in schema.arguments
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        if storages(written).keys() <= self.own.keys():
            return operation(*args, **kwargs)
        if not schema.returns:
            return None
        return written[0] if len(schema.returns) == 1 else tuple(written)


class EmulatedGraph:
    """Records what PyTorch runs on the CPU and replays it; interfaces.Graph, as CUDAGraph is.

    Python runs at capture only: numbers, lists and branches stay as they were then, and a replay
    reads and writes the memory of the tensors used then. `num_launches` is how many operations one
    replay stands for.
    """

    def __init__(self) -> None:
        self._recording: _Recording | None = None
        self._operations: list[Recorded] = []
        self._own: list[Tensor] = []
        self._inputs: list[Input] = []
        self._pool = EmulatedPool()

    @property
    def num_launches(self) -> int:
        """Operations that a replay runs without launching them one by one."""
        return sum(name_of(x.operation) not in ALLOCATIONS for x in self._operations)

    def pool(self) -> EmulatedPool:
        """The memory to share with graphs that are captured later."""
        return self._pool

    def capture_begin(self, pool: EmulatedPool | None = None) -> None:
        """From here on record what this thread runs. `cuda_graphs.capture` calls it."""
        if self._operations or self._recording is not None:
            raise RuntimeError("this graph is captured already; make a new one")
        if pool is not None:
            self._pool = pool
        self._recording = recording = _Recording()
        recording.active.enter_context(recording.guard)
        recording.active.enter_context(recording)

    def capture_end(self) -> None:
        """The graph is complete; its results hold no numbers before the first `replay`.

        Raises the CaptureError of a capture in which something was refused, even if it was caught:
        CUDA takes nothing of such a capture either.
        """
        recording, self._recording = self._recording, None
        if recording is None:
            raise RuntimeError("capture_end without capture_begin")
        recording.active.close()
        if recording.guard.breach is not None:
            raise recording.guard.breach
        self._operations, self._own = recording.operations, list(recording.own.values())
        self._inputs = list(recording.inputs.values())
        with torch.inference_mode():
            _poison(self._own)

    def replay(self) -> None:
        """Run everything that was recorded, in the same memory.

        Raises RuntimeError if the graph was not captured, or if a tensor from outside that it uses
        is held by nobody any more: on a GPU its memory would be another's by now.
        """
        if not self._operations:
            raise RuntimeError("there is nothing to replay: the graph was not captured")
        with _disable_current_modes(), torch.inference_mode():
            by_looking = _holders(torch.empty(1)) - 1  # differs between versions of PyTorch
            for used in self._inputs:
                if used.is_freed(by_looking):
                    raise RuntimeError(
                        f"the graph uses memory that was freed: a tensor of shape {used.where}; "
                        "keep it for as long as the graph"
                    )
            other = self._pool.last
            if other is not None and other is not self:
                _poison(other._own)
            self._pool.last = self
            for recorded in self._operations:
                recorded.run()

    def reset(self) -> None:
        """Give the memory back; nothing can be replayed afterwards."""
        self._operations, self._own, self._inputs = [], [], []
