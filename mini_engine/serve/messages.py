"""Owns what front end and engine core say to each other: plain dicts, which msgpack can pack.

To the core: "add" (a request), "abort" (ids), "trace" (whether step records are wanted) and "stop".
From the core: "ready" (the engine's numbers), "outputs" (of one step, with the state of the
engine), "refused" (a request) and "failed" (the core is gone).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import msgpack

from mini_engine.control.request import Request
from mini_engine.interfaces import TokenLogprobs
from mini_engine.sampling_params import SamplingParams

Message = dict[str, Any]


def pack(message: Message) -> bytes:
    """A message on the wire."""
    packed: bytes = msgpack.packb(message)
    return packed


def unpack(data: bytes) -> Message:
    """A message off the wire. Token ids may be keys, as in a logit bias."""
    message: Message = msgpack.unpackb(data, strict_map_key=False)
    return message


def add(request: Request) -> Message:
    """A request as the core needs it: its text stays in front."""
    params = dataclasses.asdict(request.params)
    params["stop"] = ()  # stop strings are found where the text is
    return {
        "kind": "add",
        "id": request.request_id,
        "prompt": request.prompt_token_ids,
        "params": params,
        "priority": request.priority,
        "salt": request.cache_salt,
        "ends": sorted(request.end_token_ids),
        "seed": request.seed,
        "choice": request.choice,
    }


def added(message: Message) -> Request:
    """The request of an "add" message."""
    return Request(
        request_id=message["id"],
        prompt_token_ids=message["prompt"],
        params=SamplingParams(**message["params"]),
        priority=message["priority"],
        cache_salt=message["salt"],
        end_token_ids=frozenset(message["ends"]),
        seed=message["seed"],
        choice=message["choice"],
    )


def logprobs(entries: list[Any]) -> list[TokenLogprobs]:
    """Log probabilities as they came out of a message."""
    return [
        TokenLogprobs(token, value, rank, tuple((int(t), float(v)) for t, v in top))
        for token, value, rank, top in entries
    ]
