"""Owns the tie band: how close two logits must be for the order of summation to decide.

eps is the largest difference between the reference's logits and its own for the same tokens, over
other budgets, with and without the prefix cache, and with each request alone; tau is 20 eps, and at
least FLOOR. Only the reference is run for it, and only once tokens or logits differ at all.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from judge.api import Ask
from judge.models import folder_of, is_real
from judge.progress import write_atomically
from judge.sandbox import THREADS
from judge.wire import Raised
from mini_engine.text.default_model import cache_dir
from mini_engine.text.weights import weight_files

FLOOR = 1e-3
FACTOR = 20.0


def tie_band(payload: Any, expected: Any, ask: Ask) -> float:
    """tau for the model of a payload on this machine. `expected` is the reference's answer.

    A tiny model is measured each time; a real one once per machine, torch, device and number of
    threads, and remembered in the cache folder.
    """
    if "tops" not in expected:
        return FLOOR
    model = payload.get("model", "")
    if not is_real(model):
        return band(measure(payload, expected, ask.ours))
    key = remembered_as(model, ask.device)
    known = _remembered()
    if key not in known:
        known[key] = measure(payload, expected, ask.ours)
        _remember(known)
    return band(known[key])


def remembered_as(model: str, device: str) -> str:
    """All that the noise of a real model depends on, as one line."""
    import importlib.metadata  # slow, and seldom needed

    folder = folder_of(model)
    stamps = [(f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in weight_files(folder)]
    threads = os.environ.get("OMP_NUM_THREADS", str(THREADS))
    machine = f"{platform.node()} {platform.machine()} {platform.processor()}"
    torch = importlib.metadata.version("torch")
    return f"{folder} {stamps} torch {torch} {device} threads {threads} {machine}"


def _file() -> Path:
    return cache_dir() / "tie-bands.json"


def _remembered() -> dict[str, float]:
    """What was measured before; a file that can't be read counts as none."""
    try:
        known = json.loads(_file().read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    pairs = known.items() if isinstance(known, dict) else ()
    return {key: eps for key, eps in pairs if isinstance(eps, float) and math.isfinite(eps)}


def _remember(known: dict[str, float]) -> None:
    """Best effort: without the file the next failure measures again."""
    with contextlib.suppress(OSError):
        _file().parent.mkdir(parents=True, exist_ok=True)
        write_atomically(_file(), known)


def measure(payload: Any, expected: Any, run: Callable[[Any], Any]) -> float:
    """eps: `run` gives the reference's answer to other payloads than that of `expected`."""
    eps = 0.0
    tokens = {request: tokens for request, (tokens, _) in expected["outputs"].items()}
    for other in variants(payload):
        answer = run({**other, "force": tokens})
        assert not isinstance(answer, Raised)
        for request, tops in expected["tops"].items():
            pairs = zip(tops, answer["tops"].get(request, []), strict=False)
            eps = max([eps, *(apart(ours, others) for ours, others in pairs)])
    return eps


def band(eps: float) -> float:
    """tau for a measured eps."""
    return max(FLOOR, FACTOR * eps)


def variants(payload: Any) -> Iterator[Any]:
    """The same requests, batched, chunked and cached in other ways."""
    options = payload["options"]
    budget = options["max_num_batched_tokens"]
    cached = options.get("enable_prefix_caching", True)
    changes = [{"max_num_batched_tokens": 3 * budget}, {"enable_prefix_caching": not cached}]
    if options.get("enable_chunked_prefill", True):  # else a prompt must fit the budget
        changes.append({"max_num_batched_tokens": max(1, budget // 3)})
    for change in changes:
        yield {**payload, "options": {**options, **change}}
    yield {**payload, "requests": _one_by_one(payload["requests"], budget)}


def _one_by_one(requests: Any, budget: int) -> list[Any]:
    """Each request arrives once the one before it has surely ended; no abort then."""
    alone, step = [], 0
    for request in requests:
        alone.append({**request, "step": step, "abort": None})
        step += -(-len(request["prompt"]) // budget) + request["max_tokens"] + 1
    return alone


def apart(ours: Any, theirs: Any) -> float:
    """How far the best logits of one output differ, at least; infinite where one is no number.

    A token that is among the best on one side only has at most the other side's least of these.
    """
    (ids, logits), (other_ids, other_logits) = ours, theirs
    mine = dict(zip(ids, logits, strict=True))
    yours = dict(zip(other_ids, other_logits, strict=True))
    differences = [abs(logit - yours[token]) for token, logit in mine.items() if token in yours]
    for some, others, least in ((mine, yours, min(other_logits)), (yours, mine, min(logits))):
        differences += [logit - least for token, logit in some.items() if token not in others]
    return math.inf if any(map(math.isnan, differences)) else max(differences)
