"""What a CUDA graph does, tested on whichever kind of graph the device has.

Tests marked as the emulator's check what CUDA leaves undefined (old numbers, freed memory) or what
only the emulator tells: the operation and the line.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mini_engine.compute.cuda_graphs import capture, new_graph, warm_up
from mini_engine.compute.graph_emulator import EmulatedGraph
from mini_engine.compute.graph_rules import CaptureError
from mini_engine.compute.launches import LaunchCounter
from tests.graphs.devices import on_each_device


def captured(step: Callable[[], Any], device: str = "cpu", pool: object = None) -> Any:
    """The graph of a step, and its result, which is static."""
    warm_up(step, torch.device(device))
    graph = new_graph(torch.device(device))
    with capture(graph, pool):
        result = step()
    return graph, result


# Replay


@on_each_device
def test_a_replay_reads_what_the_input_holds_now(device: str) -> None:
    static = torch.tensor([1.0, 2.0], device=device)
    graph, doubled = captured(lambda: static * 2 + 1, device)
    address = doubled.data_ptr()
    for numbers in ([1.0, 2.0], [5.0, -3.0]):
        static.copy_(torch.tensor(numbers))
        graph.replay()
        assert doubled.tolist() == [2 * x + 1 for x in numbers]
    assert doubled.data_ptr() == address


@on_each_device
def test_another_tensor_under_the_same_name_changes_nothing(device: str) -> None:
    static = kept = torch.tensor([1.0, 2.0], device=device)
    graph, doubled = captured(lambda: static * 2, device)
    static = torch.tensor([7.0, 7.0], device=device)
    graph.replay()
    assert doubled.tolist() == [2.0, 4.0]
    assert kept.tolist() == [1.0, 2.0]


@on_each_device
def test_python_numbers_and_branches_stay_as_they_were_at_capture(device: str) -> None:
    static = torch.arange(4.0, device=device)
    length = 2
    graph, total = captured(lambda: static[:length].sum() * (10 if length < 3 else 1), device)
    length = 4
    graph.replay()
    assert total.item() == 10.0


@on_each_device
def test_the_next_replay_overwrites_the_result(device: str) -> None:
    static = torch.zeros(1, device=device)
    graph, result = captured(lambda: static + 1, device)
    graph.replay()
    kept, copied = result, result.clone()
    static.fill_(5.0)
    graph.replay()
    assert (kept.item(), copied.item()) == (6.0, 1.0)


@on_each_device
def test_capture_runs_nothing_and_writes_nothing(device: str) -> None:
    row = torch.tensor([2], device=device)
    value = torch.tensor([3.0], device=device)

    def step(cache: Tensor) -> None:
        cache.index_copy_(0, row, value)
        cache.add_(1.0)

    step(torch.zeros(4, device=device))  # the warm-up
    cache = torch.zeros(4, device=device)
    graph = new_graph(torch.device(device))
    with capture(graph):
        step(cache)
    assert cache.tolist() == [0.0] * 4
    graph.replay()
    assert cache.tolist() == [1.0, 1.0, 4.0, 1.0]
    graph.replay()
    assert cache.tolist() == [2.0, 2.0, 4.0, 2.0]


@on_each_device
def test_views_and_writes_into_the_graph_s_own_memory(device: str) -> None:
    static = torch.arange(6.0, device=device)

    def step() -> Tensor:
        rows = torch.zeros(2, 3, device=device)
        rows[1] = static[3:]
        torch.add(rows[0], static[:3], out=rows[0])
        rows.t()[0] += 100.0
        return rows.view(-1).clone().mul_(2)

    expected = step()
    graph, result = captured(step, device)
    for _ in range(2):
        graph.replay()
        assert torch.equal(result, expected)


@on_each_device
def test_random_numbers_go_on_in_each_replay(device: str) -> None:
    graph, drawn = captured(lambda: torch.rand(8, device=device), device)
    draws = []
    for _ in range(2):
        graph.replay()
        draws.append(drawn.tolist())
    assert draws[0] != draws[1]
    assert all(0.0 <= x < 1.0 for x in draws[0] + draws[1])


@on_each_device
def test_graphs_share_a_pool_and_replay_in_any_order(device: str) -> None:
    static = torch.ones(8, device=device)
    pool, graphs = None, {}
    for size in (8, 4, 2):
        graphs[size] = captured(lambda size=size: static[:size].cumsum(0) * 3, device, pool)
        pool = pool or graphs[size][0].pool()
    for size in (2, 8, 4, 4, 2, 8):
        graph, result = graphs[size]
        graph.replay()
        assert result.tolist() == [3.0 * (i + 1) for i in range(size)]


@on_each_device
def test_what_was_not_captured_can_t_be_replayed(device: str) -> None:
    if device == "cpu":
        with pytest.raises(RuntimeError, match="not captured"):
            EmulatedGraph().replay()
        graph, _ = captured(lambda: torch.ones(1) + 1)
        with pytest.raises(RuntimeError, match="captured already"), capture(graph):
            pass
        graph.reset()
    else:
        graph = new_graph(torch.device(device))
    with pytest.raises(RuntimeError):
        graph.replay()


# What only the emulator shows


def test_the_result_holds_poison_before_the_first_replay_and_after_another_graph_s() -> None:
    static = torch.ones(2)
    first, one = captured(lambda: static + 1)
    second, other = captured(lambda: static.long() * 2, pool=first.pool())
    assert one.isnan().all()
    assert (other < -1e18).all()
    first.replay()
    assert one.tolist() == [2.0, 2.0]
    second.replay()
    assert one.isnan().all()
    assert other.tolist() == [2, 2]
    third, _ = captured(lambda: static + 1)  # in a pool of its own
    third.replay()
    assert other.tolist() == [2, 2]


def test_empty_memory_holds_poison_in_every_replay() -> None:
    static = torch.ones(2)

    def step() -> Tensor:
        out = torch.empty(4)
        out[:2] = static
        return out

    graph, result = captured(step)
    for _ in range(2):
        graph.replay()
        assert result[:2].tolist() == [1.0, 1.0]
        assert result[2:].isnan().all()


def test_an_input_that_nobody_holds_is_found_out() -> None:
    """On a GPU its memory is another tensor's by then, and the graph computes with that."""
    kept, scale = torch.ones(2, 3), torch.ones(3)
    dropped = torch.ones(2, 3)
    rows = [dropped[1]]
    graph, result = captured(lambda: (kept + rows[0]) * torch.tensor(2.0) * scale.expand(2, 3))
    graph.replay()
    del dropped
    graph.replay()  # a view holds the memory
    assert result.tolist() == [[4.0] * 3] * 2
    rows.clear()
    with pytest.raises(
        RuntimeError, match=r"freed: a tensor of shape \[3\], used by add at .*test_"
    ):
        graph.replay()


def test_launches_are_counted_without_views_and_allocations() -> None:
    static = torch.ones(2, 3)

    def step() -> Tensor:
        out = torch.empty(3, 2)
        out.copy_(static.t().view(3, 2))
        return torch.nn.functional.linear(out, out).reshape(-1)

    graph, _ = captured(step)
    assert graph.num_launches == 2
    with LaunchCounter() as eager:
        step()
    assert eager.launches == {"copy_": 1, "mm": 1}
    assert (eager.allocations, eager.waits) == (2, 0)
    with LaunchCounter() as replayed:
        graph.replay()
    assert replayed.total == 0


X = torch.arange(4.0)
ZERO_DIM = torch.tensor(2)
REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "item": (lambda: X.sum().item(), "Tensor.item"),
    "tolist": (lambda: X.tolist(), "Tensor.tolist"),
    "numpy": (lambda: X.numpy(), "Tensor.numpy"),
    "asarray": (lambda: np.asarray(X), "Tensor.__array__"),
    "cpu": (lambda: X.cpu(), "Tensor.cpu"),
    "if": (lambda: 1 if X.any() else 0, "Tensor.__bool__"),
    "max": (lambda: max(X[0], X[1]), "Tensor.__bool__"),
    "int": (lambda: int(ZERO_DIM), "Tensor.__int__"),
    "float": (lambda: float(ZERO_DIM), "Tensor.__float__"),
    "range": (lambda: range(ZERO_DIM), "Tensor.__index__"),  # type: ignore[arg-type]
    "slice up to a tensor": (lambda: X[:ZERO_DIM], "_local_scalar_dense"),  # type: ignore[misc]
    "arange of a tensor": (lambda: torch.arange(ZERO_DIM), "_local_scalar_dense"),  # type: ignore[call-overload]
    "in": (lambda: 3.0 in X, "Tensor.__contains__"),
    "print": (lambda: str(X), "Tensor.__repr__"),
    "f-string": (lambda: f"{ZERO_DIM}", "_local_scalar_dense"),
    "nonzero": (lambda: X.nonzero(), "nonzero"),
    "where": (lambda: torch.where(X > 1), "nonzero"),
    "masked_select": (lambda: X.masked_select(X > 1), "masked_select"),
    "unique": (lambda: X.unique(), "_unique2"),
    "boolean index": (lambda: X[X > 1], "index"),
    "boolean index set to a tensor": (lambda: X.clone().__setitem__(X > 1, X[2:]), "index_put_"),
    "repeat_interleave": (lambda: X.repeat_interleave(X.long()), "repeat_interleave"),
    "equal": (lambda: torch.equal(X, X), "equal"),
    "allclose": (lambda: torch.allclose(X, X), "Tensor.__bool__|_local_scalar_dense|allclose"),
    "tensor of a list": (lambda: torch.tensor([1, 2]), "lift_fresh"),
    "tensor on the device": (lambda: torch.tensor(1, device="cpu"), "torch.tensor"),
    "new_tensor": (lambda: X.new_tensor([1.0]), "Tensor.new_tensor"),
    "index by a list": (lambda: X[[0, 1]], "lift_fresh"),
    "from_numpy": (lambda: torch.from_numpy(np.ones(2)), "lift_fresh"),
    "own generator": (lambda: torch.rand(2, generator=torch.Generator()), "rand"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_the_emulator_refuses_what_cuda_refuses(name: str) -> None:
    call, operation = REFUSED[name]
    graph = EmulatedGraph()
    message = rf"^({operation}) can't be captured at "
    with pytest.raises(CaptureError, match=message) as caught, capture(graph):
        call()
    assert Path(__file__).name + f":{call.__code__.co_firstlineno}" in str(caught.value)
    with pytest.raises(RuntimeError, match="not captured"):
        graph.replay()
    call()  # the guard is gone


ALLOWED: dict[str, Callable[[], object]] = {
    "fill under a mask": lambda: X.clone().__setitem__(X > 1, 0.0),
    "masked_fill": lambda: X.masked_fill(X > 1, 0.0),
    "where of three": lambda: torch.where(X > 1, X, -X),
    "index by a tensor": lambda: X[X.long()],
    "set by index": lambda: X.clone().__setitem__(0, 5.0),
    "a number as a tensor": lambda: X + torch.tensor(1.0),
    "iteration": lambda: [row + 1 for row in X],
    "shape": lambda: torch.zeros(X.shape[0]),
    "repeat_interleave, told the size": lambda: X.repeat_interleave(X.long(), output_size=6),
}


@pytest.mark.parametrize("name", list(ALLOWED))
def test_the_emulator_takes_what_cuda_takes(name: str) -> None:
    graph, _ = captured(ALLOWED[name])
    graph.replay()


def test_a_broken_capture_stays_broken_when_the_error_is_caught() -> None:
    def careless() -> None:
        try:
            X.sum().item()
        except CaptureError:
            X.add(1)

    with pytest.raises(CaptureError, match="item"), capture(EmulatedGraph()):
        careless()
    graph = EmulatedGraph()

    def silent() -> None:
        with contextlib.suppress(CaptureError):
            X.sum().item()

    with pytest.raises(CaptureError, match="item"), capture(graph):
        silent()
    with pytest.raises(RuntimeError, match="not captured"):
        graph.replay()


def test_another_error_in_the_block_is_the_one_that_is_seen() -> None:
    with pytest.raises(ZeroDivisionError), capture(EmulatedGraph()):
        _ = 1 / 0
