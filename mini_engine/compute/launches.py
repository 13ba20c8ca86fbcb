"""Owns the view of PyTorch's operations one by one: what a step launches, told apart from views.

An operation that only describes the same memory anew (a view, a transpose) costs the GPU nothing.
Every other one is at least one kernel launch: Python, the dispatcher and the driver work on it, and
for a small model that takes longer than the kernel itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# They only take memory; nothing runs.
ALLOCATIONS = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
COMPOSITE = "CompositeImplicitAutograd"


def name_of(operation: Any) -> str:
    """The plain name of an ATen operation: "index_select" of aten::index_select.out."""
    return operation._schema.name.removeprefix("aten::")


def storages(tree: Any) -> dict[int, Tensor]:
    """The memory behind all tensors in nested arguments or results: its identity -> a tensor."""
    tensors = [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]
    return {tensor.untyped_storage()._cdata: tensor for tensor in tensors}


def changes_memory(operation: Any) -> bool:
    """Whether it writes into an argument: `add_`, `copy_`, anything with `out=`."""
    only_describes = torch.Tag.inplace_view in operation.tags  # t_, detach_: shapes, not numbers
    return bool(operation._schema.is_mutable) and not only_describes


class OperationWatch(TorchDispatchMode, ABC):
    """While active, hands every ATen operation of this thread to `saw`.

    Operations that are made of others (`linear`, `reshape`) are taken apart first, so that what is
    seen is what runs.
    """

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), COMPOSITE):
            with self:
                return func.decompose(*args, **kwargs)
        return self.saw(func, args, kwargs)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: torch would import its compiler here, which takes more than a second."""
        return False

    @abstractmethod
    def saw(self, operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the operation, or don't; what it returns goes to the caller."""


class LaunchCounter(OperationWatch):
    """Counts what runs while it is active.

    `launches` maps names of operations to how often they ran, `allocations` counts results in new
    memory, `waits` the numbers that Python had to wait for. The replay of an emulated graph is not
    seen: it stands for one launch.
    """

    def __init__(self) -> None:
        super().__init__()
        self.launches: Counter[str] = Counter()
        self.allocations = 0
        self.waits = 0

    @property
    def total(self) -> int:
        """All launches."""
        return self.launches.total()

    def saw(self, operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run and count."""
        result = operation(*args, **kwargs)
        name = name_of(operation)
        fresh = storages(result).keys() - storages((args, kwargs)).keys()
        self.allocations += len(fresh)
        self.waits += torch.Tag.data_dependent_output in operation.tags
        if (fresh and name not in ALLOCATIONS) or changes_memory(operation):
            self.launches[name] += 1
        return result
