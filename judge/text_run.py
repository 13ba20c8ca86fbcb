"""Owns driving detokenizers and stop checkers with scripts. Runs in the child.

Several objects of one script take turns, as the requests of an engine do. What a script says is
text, which is turned into tokens here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from judge import wire
from judge.api import Context
from judge.execute import attempt
from judge.text_tokenizers import LightTokenizer, light_tokenizer
from judge.wire import Raised


def detokenize(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Feed tokens to detokenizers and look at all that they give.

    payload: "model" (whose tokenizer, see `text_tokenizers`), and "streams", each with "output" (a
    text, or token ids), "before" (the prompt, likewise), "drop" (how many of the output's last
    tokens never come) and "sizes" (how many tokens each `add` gets; without it one each). The
    answer has for each stream "tokens" (as the vocabulary spells them), "steps" ([text, pending]
    after each `add`), "end" (what `finish` gave) and "changed" (the argument that was changed, or
    None); and "decoded": how many tokens the tokenizer was asked for, per token of output.
    """
    tokenizer = light_tokenizer(payload["model"])
    answers = [_stream(parts, tokenizer, stream) for stream in payload["streams"]]
    tokenizer.decoded = 0
    _take_turns([answer.pop("run") for answer in answers])
    total = sum(len(answer["tokens"]) for answer in answers)
    return {"streams": answers, "decoded": tokenizer.decoded / max(1, total)}


def _stream(parts: Mapping[str, Any], tokenizer: LightTokenizer, stream: Any) -> dict[str, Any]:
    output, prompt = (_ids(tokenizer, stream[name]) for name in ("output", "before"))
    output = output[: len(output) - stream["drop"]]
    answer: dict[str, Any] = {
        "tokens": [str(tokenizer.convert_ids_to_tokens(token)) for token in output],
        "steps": [],
        "end": None,
        "changed": None,
    }
    groups = _groups(output, stream["sizes"])
    answer["run"] = _feed(parts, tokenizer, prompt, groups, answer)
    return answer


def _ids(tokenizer: LightTokenizer, given: str | list[int]) -> list[int]:
    return tokenizer.encode(given) if isinstance(given, str) else list(given)


def _groups(ids: list[int], sizes: list[int] | None) -> list[list[int]]:
    if sizes is None:
        return [[token] for token in ids]
    groups, start = [], 0
    for size in sizes:
        groups.append(ids[start : start + size])
        start += size
    return [*groups, ids[start:]]


def _feed(
    parts: Mapping[str, Any], tokenizer: LightTokenizer, prompt: list[int],
    groups: list[list[int]], answer: dict[str, Any],
) -> Iterator[None]:  # fmt: skip
    """Make a detokenizer and give it one group at a time; what came out is put into `answer`."""
    given = list(prompt)
    part = attempt(parts["IncrementalDetokenizer"], tokenizer, given)
    if isinstance(part, Raised):
        answer["end"] = part
        return
    for group in groups:
        yield
        handed = list(group)
        text = attempt(part.add, handed)
        pending = attempt(getattr, part, "pending")
        answer["steps"].append([wire.copy(text), wire.copy(pending)])
        if given != prompt:
            answer["changed"] = "prompt_token_ids"
        elif handed != group:
            answer["changed"] = "token_ids"
        if isinstance(text, Raised) or isinstance(pending, Raised):
            return
    answer["end"] = wire.copy(attempt(part.finish))


def _take_turns(runs: list[Iterator[None]]) -> None:
    while runs:
        runs = [run for run in runs if next(run, "over") != "over"]


def check_stops(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Feed pieces of text to stop checkers until a stop string is complete or the text ends.

    payload: "scripts", each with "stops", "include" and "pieces". The answer has for each script
    "steps" ([shown, matched] after each `add`), "end" (what `finish` gave, or None after a match)
    and "changed".
    """
    answers: list[dict[str, Any]] = []
    runs = []
    for script in payload["scripts"]:
        answers.append({"steps": [], "end": None, "changed": None})
        runs.append(_check(parts, script, answers[-1]))
    _take_turns(runs)
    return answers


def _check(parts: Mapping[str, Any], script: Any, answer: dict[str, Any]) -> Iterator[None]:
    stops = list(script["stops"])
    part = attempt(parts["StopChecker"], stops, script["include"])
    if isinstance(part, Raised):
        answer["end"] = part
        return
    for piece in script["pieces"]:
        yield
        shown = attempt(part.add, piece)
        matched = attempt(getattr, part, "matched")
        answer["steps"].append([wire.copy(shown), wire.copy(matched)])
        if stops != script["stops"]:
            answer["changed"] = "stops"
        if matched is not None or isinstance(shown, Raised):
            return
    answer["end"] = wire.copy(attempt(part.finish))
