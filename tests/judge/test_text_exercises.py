"""The exercises on text: what their mistakes stand on is right, and their references agree with the
server's own framing and with the official client's reader."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Generator
from itertools import pairwise
from typing import Any

import pytest
from openai._streaming import SSEDecoder

from judge import wire
from judge.api import Context, resolve
from judge.exercises import find
from judge.mistakes.text_detokenizer import PlainDetokenizer
from judge.mistakes.text_stop_checker import Buffered, PlainChecker
from judge.solutions.text import chat_events, read_events
from judge.text_tokenizers import KINDS, light_tokenizer
from mini_engine.outputs import RequestOutput
from mini_engine.serve.answers import Answer, usage
from mini_engine.serve.generation import Generation
from mini_engine.serve.protocol import ChatRequest
from tests.text import tokenizers_for_tests

TEXTS = ["Hello", " two\nlines", "", '"quoted" \\', " \N{WAVING HAND SIGN}\u4f60", "\u2028", ""]
ENDS = ["stop", "length", "capacity"]


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("text.detokenizer", PlainDetokenizer),
        ("text.stop-checker", PlainChecker),
        ("text.stop-checker", Buffered),
    ],
)
def test_the_programs_that_mistakes_stand_on_are_right(name: str, part: type) -> None:
    (exercise,) = find(name)
    (symbol,) = exercise.symbols
    context = Context(slot=exercise.slot)
    right = resolve(exercise.reference_parts()[symbol])
    for check in exercise.details().checks:
        if "smollm2" in check.needs or check.kind == "policy":
            continue
        for case in check.cases(random.Random(f"{check.name} 5")):
            expected, got = (
                wire.copy(resolve(check.execute)({symbol: one}, wire.copy(case.payload), context))
                for one in (right, part)
            )
            if check.normalize is not None:
                expected, got = (check.normalize(case, answer) for answer in (expected, got))
            assert check.compare(case, expected, got) is None, case.label


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_light_tokenizer_does_what_that_of_transformers_does(kind: str) -> None:
    light, whole = light_tokenizer(kind), getattr(tokenizers_for_tests, kind)()
    rng = random.Random(3)
    assert len(light) == len(whole)
    assert set(light.all_special_ids) == set(whole.all_special_ids)
    for _ in range(50):
        ids = [rng.randrange(len(light) + 3) for _ in range(rng.randrange(12))]
        options = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
        assert light.decode(ids, **options) == whole.decode(ids, **options)
        assert light.convert_ids_to_tokens(ids) == whole.convert_ids_to_tokens(ids)
    for text in ("hello world", "he \N{WAVING HAND SIGN}", "a\u4f60"):
        assert light.encode(text) == whole.encode(text)


class Engine:
    """Says what it is told to; raises at the end, if it is told to."""

    def __init__(self, outputs: list[tuple[str, str | None]], error: Exception | None) -> None:
        self.described = {"max_model_len": 64}
        self._outputs, self._error = outputs, error

    async def generate(self, *args: Any, **options: Any) -> AsyncIterator[RequestOutput]:
        text = ""
        for new, reason in self._outputs:
            text += new
            yield RequestOutput("r", [1], [7] if new else [], new, [], text, reason)
        if self._error is not None:
            raise self._error


class NoMetrics:
    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *args: Any) -> Any:
        return self


class Serving:
    def __init__(self, engine: Engine) -> None:
        self.engine, self.metrics = engine, NoMetrics()
        self.options = type("Options", (), {"timeout_s": None})


def of_the_server(
    outputs: list[tuple[str, str | None]], form: Answer, counts: bool, error: Exception | None
) -> list[str]:
    """The events of mini_engine's own server."""
    told = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
    body = ChatRequest(**told, stream_options={"include_usage": counts})

    async def run() -> list[str]:
        serving: Any = Serving(Engine(outputs, error))
        generation = Generation(serving, body, [[1]], form)
        return [event async for event in generation.events(await generation.first())]

    return asyncio.run(run())


def ours(
    outputs: list[tuple[str, str | None]], form: Answer, counts: bool, error: Exception | None
) -> list[str]:
    def run() -> Generator[tuple[str, str | None]]:
        yield from outputs
        if error is not None:
            raise error

    chunk = {"id": form.request_id, "object": "chat.completion.chunk"}
    envelope = {**chunk, "created": form.created, "model": form.model}
    tokens = usage(1, sum(bool(text) for text, _ in outputs)) if counts else None
    return list(chat_events(run(), envelope, tokens))


def parsed(events: list[str]) -> list[Any]:
    found = []
    for event in events:
        assert event.startswith("data: ")
        assert event.endswith("\n\n")
        data = event[6:-2]
        found.append(data if data == "[DONE]" else json.loads(data))
        for choice in found[-1].get("choices", []) if data != "[DONE]" else []:
            choice.pop("logprobs", None)  # the exercise leaves them out
    return found


@pytest.mark.parametrize("error", [None, RuntimeError("the engine ended")])
@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("end", ENDS)
def test_the_events_are_those_of_the_server(
    end: str, counts: bool, error: Exception | None
) -> None:
    form = Answer("small", True, None)
    outputs: list[tuple[str, str | None]] = [(text, None) for text in TEXTS]
    if error is None:
        outputs[-1] = "", end
    events = ours(outputs, form, counts, error)
    theirs = parsed(of_the_server(outputs, form, counts, error))
    for event in theirs:
        if event != "[DONE]" and "error" in event:
            event["error"]["message"] = event["error"]["message"].removeprefix("RuntimeError: ")
    assert parsed(events) == theirs


def test_the_official_client_reads_the_same_events_however_they_are_cut() -> None:
    form, rng = Answer("small", True, None), random.Random(8)
    data = "".join(ours([(text, None) for text in TEXTS], form, True, None)).encode()
    data = b": ping\n\n" + data.replace(b"\n\n", b"\r\n\r\n", 2)
    official = [
        json.loads(e.data) for e in SSEDecoder().iter_bytes(iter([data])) if e.data[0] == "{"
    ]
    assert len(official) == 7
    for _ in range(30):
        cuts = sorted({0, len(data), *(rng.randrange(len(data)) for _ in range(8))})
        pieces = [data[a:b] for a, b in pairwise(cuts)]
        assert list(read_events(pieces)) == official
