"""Owns running a learner's functions of sampling. Runs in the child; knows no expected value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from judge import engine_watch, wire
from judge.api import Context
from judge.engine_run import serve
from judge.execute import attempt
from judge.models import is_real
from judge.tensor_calls import threads
from judge.tensor_engine import load
from mini_engine.compute.noise import draw_keys, gumbel
from mini_engine.compute.plain_sampler import filter_logits
from mini_engine.compute.sampler_adapters import adjusted
from mini_engine.control.request import Request
from mini_engine.interfaces import TokenLogprobs
from mini_engine.learner_parts import engine_parts
from mini_engine.sampling_params import SamplingParams

NOWHERE = -1e6  # the score of a token that a filter drops; infinities have no difference
PARAMS = ("temperature", "min_p", "top_k", "top_p")


def scores(logits: Any, requests: Sequence[Request]) -> Any:
    """What a token is chosen by: float32 [n, vocab_size]. Of a greedy request its logits.

    Of others the filtered logits plus noise. The best logit of a row that is filtered becomes 0.
    """
    found = logits.float().clone()
    token_ids = torch.arange(found.shape[1], device=found.device)[None]
    for row, request in enumerate(requests):
        if not request.params.greedy:
            numbers = (torch.tensor([getattr(request.params, name)]) for name in PARAMS)
            kept = filter_logits(found[row : row + 1], *(n.to(found.device) for n in numbers))
            noise = gumbel(draw_keys([request], found.device), token_ids)
            found[row] = (kept + noise)[0].clamp(min=NOWHERE)
    return found


class DrawWatch(engine_watch.Watch):
    """Keeps the best scores at each output in the place of the best logits."""

    def scores(self, logits: Any, requests: Any) -> Any:
        """Those by which the reference chooses."""
        return scores(adjusted(logits, requests), requests)


def in_engine(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Serve a workload with the learner's functions in the sampler. For `execute`.

    payload: as for `tensor_engine.run`; its requests have "params". In the answer "tops" are scores
    instead of logits.
    """
    count = torch.get_num_threads() if is_real(payload["model"]) else 1
    with threads(count):
        return attempt(_in_engine, parts, payload, context)


def _in_engine(
    parts: Mapping[str, Any], payload: Any, context: Context, serving: Any = serve
) -> Any:
    from mini_engine.engine import LLMEngine

    model = load(payload["model"], payload["model_seed"], context.device)
    options = {**payload["options"], "device": context.device}
    engine = LLMEngine(model, parts=engine_parts(parts), **options)
    return engine_watch.run(engine, payload, serving, DrawWatch)


def with_logprobs(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """The same for requests that ask for logprobs; "logprobs" of the answer holds them by id."""
    told: dict[str, Any] = {}

    def serve_and_note(engine: Any, payload: Any) -> Any:
        step = engine.step

        def noting() -> Any:
            outputs = step()
            told.update({o.request_id: entries(o.logprobs) for o in outputs if o.finished})
            return outputs

        engine.step = noting
        return serve(engine, payload)

    count = torch.get_num_threads() if is_real(payload["model"]) else 1
    with threads(count):
        answer = attempt(_in_engine, parts, payload, context, serve_and_note)
    return {**answer, "logprobs": told} if isinstance(answer, dict) else answer


def entries(value: Any) -> Any:
    """A list of TokenLogprobs as plain data; anything else as it is."""
    if type(value) is not list:
        return value
    return [vars(item) if type(item) is TokenLogprobs else item for item in value]


def logprobs(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Call `token_logprobs` once. For `execute`.

    payload: {"logits", "token_ids", "counts"}. The answer is {"value": what it gave, with mappings
    in the place of TokenLogprobs}, with "changed": the names of arguments that the call changed.
    """
    given = {"logits": payload["logits"].to(context.device)}
    given |= {name: list(payload[name]) for name in ("token_ids", "counts")}
    before = {name: wire.encode(value) for name, value in given.items()}
    with threads(1), torch.no_grad():
        value = attempt(parts["token_logprobs"], *given.values())
    answer = {"value": entries(value)}
    changed = [name for name, old in before.items() if wire.encode(given[name]) != old]
    return {**answer, "changed": changed} if changed else answer


def sample(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Sample the same rows in several groups. For `execute`.

    payload: {"logits": [n, vocab_size], "requests": [...], "groups": [[row, ...], ...]}; a request
    is {"seed", "outputs" (how many), "params"}, and maybe "choice". The answer holds "tokens", what
    each group gave, up to the first that raises; "changed", what a call changed, if it did; and the
    "scores" that the reference chooses by.
    """
    logits = payload["logits"].to(context.device)
    tokens: list[Any] = []
    changed: list[str] = []
    for group in payload["groups"]:
        rows, requests = logits[group].clone(), [_request(payload["requests"][r]) for r in group]
        before, seen = wire.encode(rows), [_seen(request) for request in requests]
        with threads(1), torch.no_grad():
            tokens.append(attempt(parts["sample"], rows, requests))
        changed += ["logits"] * (wire.encode(rows) != before)
        changed += ["requests"] * ([_seen(request) for request in requests] != seen)
        if isinstance(tokens[-1], wire.Raised):
            break
    answer: dict[str, Any] = {"tokens": tokens}
    if changed:
        answer["changed"] = list(dict.fromkeys(changed))
    with threads(1), torch.no_grad():
        answer["scores"] = scores(logits, [_request(entry) for entry in payload["requests"]])
    return answer


def draws(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Sample one row many times in one call, each time with another seed. For `execute`.

    payload: {"logits": [vocab_size], "params", "first" (seed), "count"}. The answer is what the
    call gave.
    """
    logits = payload["logits"].to(context.device).expand(payload["count"], -1).clone()
    params = SamplingParams(**payload["params"])
    seeds = range(payload["first"], payload["first"] + payload["count"])
    requests = [Request(f"request-{seed}", [1, 2], params, seed=seed) for seed in seeds]
    with threads(1), torch.no_grad():
        return attempt(parts["sample"], logits, requests)


def _request(entry: Any) -> Request:
    params = SamplingParams(max_tokens=1000, **entry["params"])
    outputs = [(7 * number) % 5 for number in range(entry["outputs"])]
    name, choice = f"request-{entry['seed']}", entry.get("choice", 0)
    return Request(
        name, [1, 2], params, seed=entry["seed"], choice=choice, output_token_ids=outputs
    )


def _seen(request: Request) -> Any:
    return [list(request.output_token_ids), list(request.token_ids), request.num_computed]
