"""Owns driving a learner's static buffers. Runs in the child; knows no expected value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from judge import wire
from judge.api import Context
from judge.execute import attempt
from judge.wire import Raised
from mini_engine.interfaces import Batch

OVERWRITTEN = -7  # no token, position, slot, length or block


def fill(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Make buffers, take views of every bucket once, then fill step after step.

    payload: {"args": [most_rows, width, scratch_block, block_size], "buckets": [...], "steps":
    [{"bucket", "batch": {name: numbers}}, ...]}. After each fill the batch is overwritten, and the
    views taken at the start are read. The answer is a list: for the new buffers and for each step
    {"batch": the tensors of its view by name}, or {"value": what came instead}, with "changed":
    the names of the batch's tensors that `fill` changed. A fill that raised has its exception as
    "value" and the view as it is then under "after". The first answer has "copied" if another view
    of the same bucket lies elsewhere.
    """
    buffers = attempt(parts["StaticBuffers"], *payload["args"], context.device)
    if isinstance(buffers, Raised):
        return [{"value": buffers}]
    views = {}
    for bucket in payload["buckets"]:
        views[bucket] = attempt(lambda bucket=bucket: buffers.views(bucket))
    largest = payload["buckets"][-1]
    answers = [_read(views[largest])]
    if not _shares_memory(views[largest], attempt(lambda: buffers.views(largest))):
        answers[0]["copied"] = True
    for step in payload["steps"]:
        numbers = {name: torch.tensor(x, dtype=torch.int64) for name, x in step["batch"].items()}
        batch = Batch(**{name: tensor.clone() for name, tensor in numbers.items()})
        value = attempt(lambda batch=batch, step=step: buffers.fill(batch, step["bucket"]))
        changed = [name for name in numbers if not _same(numbers[name], getattr(batch, name))]
        for tensor in vars(batch).values():
            tensor.fill_(OVERWRITTEN)
        answer = _read(views[step["bucket"]])
        if isinstance(value, Raised):
            answer = {"value": value, "after": answer}
        if changed:
            answer["changed"] = changed
        answers.append(answer)
    return answers


def _same(one: Any, other: Any) -> bool:
    return one.shape == other.shape and bool(torch.equal(one, other))


def _read(view: Any) -> dict[str, Any]:
    """A view as it is now: later fills must not change what was recorded of it."""
    if type(view) is not Batch:
        return {"value": view}
    return {"batch": wire.copy(dict(vars(view)))}


def _shares_memory(view: Any, again: Any) -> bool:
    """Whether two views of one bucket lie in the same memory; True if they are no batches."""
    if type(view) is not Batch or type(again) is not Batch:
        return True
    pairs = zip(vars(view).values(), vars(again).values(), strict=True)
    return all(
        one.data_ptr() == other.data_ptr()
        for one, other in pairs
        if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)
    )
