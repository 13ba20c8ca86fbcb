"""Owns running tensor functions of a learner. Runs in the child; knows no expected value.

Everything here computes with one thread: the tensors are tiny, and threads that wait for one
another cost far more than they save. Only a real model gets all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from judge import wire
from judge.api import Context
from judge.engine_watch import TOP
from judge.execute import attempt
from judge.models import is_real
from judge.wire import Raised


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch compute with `count` threads inside, and as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def call(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Call a function of the exercise with tensors. For `execute`.

    payload: {"function": symbol, "args": [...], "names": [...], "strided": [...], "heads_first":
    [...]}. The arguments named in "strided" are slices of larger tensors; those in "heads_first"
    lie in memory with the heads before the tokens. The answer is {"value": ...}, with "changed":
    the names of the arguments that the call changed, if it changed any.
    """
    strided, heads_first = payload.get("strided", []), payload.get("heads_first", [])
    names = payload["names"]
    args = [
        _placed(value, context.device, name in strided, name in heads_first)
        for name, value in zip(names, payload["args"], strict=True)
    ]
    before = [wire.encode(value) for value in args]  # the learner may have patched torch.equal
    with threads(1), torch.no_grad():
        value = attempt(parts[payload["function"]], *args)
    changed = [
        name for name, old, new in zip(names, before, args, strict=True) if wire.encode(new) != old
    ]
    answer = {"value": value}
    if changed:
        answer["changed"] = changed
    return answer


def _placed(value: Any, device: str, strided: bool, heads_first: bool) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    value = value.to(device)
    if heads_first:
        return value.transpose(0, 1).contiguous().transpose(0, 1)
    if not strided:
        return value
    # The same numbers as a slice of a larger tensor, as the model's own queries and keys are.
    larger = torch.full(
        (value.shape[0], value.shape[1] + 2, *value.shape[2:]), 7.0, dtype=value.dtype
    )
    larger = larger.to(device)
    larger[:, 1:-1] = value
    return larger[:, 1:-1]


class WatchedModel:
    """The model as a generate loop sees it; notes every pass, and checks what it is given."""

    def __init__(self, model: Any, most_passes: int, session: object) -> None:
        self._model = model
        self.session = session  # the same object for all runs of one case
        self.config, self.dtype, self.device = model.config, model.dtype, model.device
        self.begin(most_passes)

    def begin(self, most_passes: int) -> None:
        """Note afresh. What a loop has hung on the model stays, as it would on a real one."""
        self._most_passes = most_passes
        self.passes: list[Any] = []  # [token ids, positions] of each
        self.logits_rows: list[int] = []
        self.tops: list[Any] = []  # [ids, logits] of the last row of each call of `logits`

    def __call__(self, token_ids: Any, positions: Any, attend: Any) -> Any:
        _check_integers("token_ids", token_ids)
        _check_integers("positions", positions)
        if token_ids.shape != positions.shape:
            raise ValueError(
                f"token_ids has {len(token_ids)} numbers and positions {len(positions)}: each "
                "token has one position"
            )
        if len(self.passes) == self._most_passes:
            raise RuntimeError(
                f"forward pass {self._most_passes + 1}, but prompt and new tokens together need at "
                f"most {self._most_passes}: the loop does not end where it should"
            )
        self.passes.append([token_ids.tolist(), positions.tolist()])

        def checked(layer: int, query: Any, key: Any, value: Any) -> Any:
            out = attend(layer, query, key, value)
            if not isinstance(out, torch.Tensor):
                raise TypeError(f"attend must return a Tensor, got {type(out).__name__}")
            if out.shape != query.shape:
                raise ValueError(
                    f"attend must return the query's shape {tuple(query.shape)}, got "
                    f"{tuple(out.shape)}"
                )
            return out

        return self._model(token_ids, positions, checked)

    forward = __call__

    def logits(self, hidden: Any) -> Any:
        out = self._model.logits(hidden)
        self.logits_rows.append(out.shape[0] if out.dim() == 2 else 1)
        values, ids = out.reshape(-1, out.shape[-1])[-1].topk(TOP)
        self.tops.append([ids.tolist(), values.tolist()])
        return out


@contextmanager
def token_rows(config: Any) -> Iterator[Callable[[], float]]:
    """Count the tokens that any model of this shape computes inside, in any thread.

    Notes of a watched model can be forged by the code that it is handed to, and the model inside it
    called; this counts the rows that go through the last matrix of each layer, wherever the call
    comes from. Gives a function that says how many tokens that makes.
    """
    shape = config.intermediate_size, config.hidden_size
    rows: list[int] = []

    def note(module: Any, inputs: Any, output: Any) -> None:
        if isinstance(module, torch.nn.Linear) and (
            (module.in_features, module.out_features) == shape
        ):
            rows.append(inputs[0].shape[0])

    hook = torch.nn.modules.module.register_module_forward_hook(note)
    try:
        yield lambda: sum(rows) / config.num_layers
    finally:
        hook.remove()


def _check_integers(name: str, value: Any) -> None:
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"the model takes {name} as a tensor, got {type(value).__name__}")
    if value.dim() != 1 or value.dtype not in (torch.int64, torch.int32):
        raise ValueError(
            f"the model takes {name} as a tensor of shape [n] and dtype int64, got shape "
            f"{list(value.shape)} and {value.dtype}"
        )


def _ends(ends: list[Any]) -> frozenset[int]:
    """The end tokens; a learner's answer may hold things that no set can hold."""
    return frozenset(token for token in ends if type(token) is int)


def generate(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Run a generate loop several times in one process. For `execute`.

    payload: {"runs": [{"model", "seed", "prompt", "max_tokens", "ends"}, ...]}; the model "smollm2"
    or the path of a folder is a real one, and runs on one model get the same object. "ends_like": i
    adds token i of the run before to the end tokens. The answer has one entry per run and ends with
    the first that raises: {"tokens", "passes", "rows", "logits_rows", "tops", "changed"}; "rows"
    counts all tokens that were computed, also around the watched model.
    """
    from judge.tensor_engine import load

    answers: list[Any] = []
    session = object()
    models: dict[Any, WatchedModel] = {}
    for run in payload["runs"]:
        key = run["model"], run["seed"]
        most_passes = len(run["prompt"]) + run["max_tokens"]
        if key not in models:
            models[key] = WatchedModel(load(*key, context.device), most_passes, session)
        watched = models[key]
        watched.begin(most_passes)
        prompt, ends = list(run["prompt"]), list(run["ends"])
        if "ends_like" in run and isinstance(answers[-1]["tokens"], list):
            ends += answers[-1]["tokens"][run["ends_like"] :][:1]
        count = torch.get_num_threads() if is_real(run["model"]) else 1
        with threads(count), torch.no_grad(), token_rows(watched.config) as rows:
            tokens = attempt(
                parts["generate_cached"], watched, prompt, run["max_tokens"], _ends(ends)
            )
        answers.append(
            {
                "tokens": tokens,
                "passes": watched.passes,
                "rows": rows(),
                "logits_rows": watched.logits_rows,
                "tops": watched.tops,
                "changed": prompt != run["prompt"],
            }
        )
        if isinstance(tokens, Raised):
            break
    return answers
