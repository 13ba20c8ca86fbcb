"""Owns running a learner's `build_batch`. Runs in the child; knows no expected value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judge.api import Context
from judge.execute import attempt
from judge.wire import Raised
from mini_engine.control.request import Request
from mini_engine.interfaces import Batch, Chunk


def build(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Build the batches of some steps, one after another, and read them afterwards.

    payload: {"block_size", "steps": [[chunk, ...], ...], "spoil"}; a chunk is {"id", "tokens",
    "outputs", "table", "start", "num_tokens"}, the last `outputs` of its tokens being outputs. With
    "spoil" the requests' lists are overwritten before the batches are read. The answer has one
    entry per step, {"batch": its tensors by name}, or {"value": what was returned instead or
    raised}, with "changed": what the call changed of which request, if it did, in words; it ends
    with the first step that raises.
    """
    made = []
    for step in payload["steps"]:
        chunks = [_chunk(entry) for entry in step]
        value = attempt(parts["build_batch"], chunks, payload["block_size"])
        changed = []
        for chunk, entry in zip(chunks, step, strict=True):
            before, after = _seen(_chunk(entry).request), _seen(chunk.request)
            changed += [
                f"{name} of {entry['id']}: was {before[name]}, is {after[name]}"
                for name in before
                if before[name] != after[name]
            ]
        made.append((value, changed, chunks))
        if isinstance(value, Raised):
            break
    if payload.get("spoil"):
        for _, _, chunks in made:
            for chunk in chunks:
                for numbers in (chunk.request.token_ids, chunk.request.block_table):
                    numbers[:] = [-7] * len(numbers)
    answers = []
    for value, changed, _ in made:
        answer: dict[str, Any] = {"value": value}
        if type(value) is Batch:
            answer = {"batch": vars(value)}
        if changed:
            answer["changed"] = changed
        answers.append(answer)
    return answers


def _chunk(entry: Any) -> Chunk:
    tokens, outputs = list(entry["tokens"]), entry["outputs"]
    prompt = tokens[: len(tokens) - outputs]
    request = Request(entry["id"], prompt, output_token_ids=tokens[len(prompt) :])
    request.block_table = list(entry["table"])
    request.num_computed = entry["start"]
    samples = entry["start"] + entry["num_tokens"] == len(tokens)
    return Chunk(request, entry["start"], entry["num_tokens"], samples)


def _seen(request: Request) -> dict[str, Any]:
    lists = "prompt_token_ids", "output_token_ids", "token_ids", "block_table"
    found = {name: list(getattr(request, name)) for name in lists}
    return {**found, "num_computed": request.num_computed}
