"""The exercises on text: what their mistakes stand on is right, and their references agree with the
server's own framing and with the official client's reader."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Generator
from itertools import pairwise
from typing import Any

import httpx
import pytest
from openai._streaming import SSEDecoder

from judge import text_compare, text_streams, wire
from judge.api import Context, resolve
from judge.exercises import find, text_sse, text_stop_checker
from judge.mistakes.text_detokenizer import PlainDetokenizer
from judge.mistakes.text_stop_checker import Buffered, PlainChecker
from judge.solutions.text import chat_events, read_events
from judge.text_tokenizers import KINDS, light_tokenizer
from mini_engine.config import DEFAULT_MODEL
from mini_engine.engine import LLMEngine
from mini_engine.serve.app import build_app
from mini_engine.serve.async_engine import AsyncEngine
from mini_engine.serve.guard import ServerOptions
from mini_engine.serve.links import OnMessage
from mini_engine.serve.messages import Message
from mini_engine.text.checkpoint import find_model, load_tokenizer
from mini_engine.text.detokenizer import IncrementalDetokenizer
from tests.text import tokenizers_for_tests

TEXTS = ["Hello", " two\nlines", "", '"quoted" \\', " \N{WAVING HAND SIGN}\u4f60", "\u2028", ""]


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


class ScriptedCore:
    """An engine core for one request: these tokens, one a step, then an end or a failure."""

    def __init__(self, tokens: list[int], end: str | None) -> None:
        self._tokens, self._end = tokens, end

    async def start(self, on_message: OnMessage) -> None:
        self._say = on_message
        sizes = {"max_model_len": 512, "vocab_size": 49152, "eos_token_ids": [2]}
        on_message({"kind": "ready", "engine": sizes})

    def send(self, message: Message) -> None:
        if message["kind"] == "add":
            self._task = asyncio.get_running_loop().create_task(self._run(message["id"]))

    async def _run(self, request_id: str) -> None:
        for number, token in enumerate(self._tokens, start=1):
            await asyncio.sleep(0)
            reason = self._end if number == len(self._tokens) else None
            entry = {"id": request_id, "tokens": [token], "reason": reason}
            self._say({"kind": "outputs", "outputs": [entry], "state": {}})
        if self._end is None:
            self._say({"kind": "failed", "error": "the core has gone"})

    async def close(self) -> None:
        pass


def of_the_server(tokenizer: Any, tokens: list[int], end: str | None, counts: bool) -> list[str]:
    """The events of mini_engine's own server for these tokens."""

    async def run() -> str:
        engine = AsyncEngine(ScriptedCore(tokens, end), tokenizer)
        app = build_app(engine, ServerOptions("small"))
        await engine.start()
        body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": len(tokens) + 1,
                "stream": True, "stream_options": {"include_usage": counts}}  # fmt: skip
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            answer = await client.post("/v1/chat/completions", json=body)
        assert answer.status_code == 200
        return answer.text

    return [f"{event}\n\n" for event in asyncio.run(run()).split("\n\n") if event]


def ours(
    outputs: list[tuple[str, str | None]], envelope: dict[str, Any], counts: Any, fails: bool
) -> list[str]:
    def run() -> Generator[tuple[str, str | None]]:
        yield from outputs
        if fails:
            raise RuntimeError("the core has gone")

    return list(chat_events(run(), envelope, counts))


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


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("end", ["stop", "length", "capacity", None])
def test_the_events_are_those_of_the_server(end: str | None, counts: bool) -> None:
    tokenizer = load_tokenizer(find_model(DEFAULT_MODEL))
    tokens = tokenizer.encode("".join(TEXTS)) + [2] * (end == "stop")
    theirs = parsed(of_the_server(tokenizer, tokens, end, counts))
    one = IncrementalDetokenizer(tokenizer)
    shown = tokens[:-1] if end == "stop" else tokens  # the last stands for the end, not for text
    outputs: list[tuple[str, str | None]] = [(one.add([token]), None) for token in shown]
    outputs = [*outputs, ("", end)] if end == "stop" else [*outputs[:-1], (outputs[-1][0], end)]
    envelope = {key: theirs[0][key] for key in ("id", "object", "created", "model")}
    usage = theirs[-2].get("usage") if counts and end is not None else None
    mine = parsed(ours(outputs, envelope, usage, fails=end is None))
    if end is None:
        for events in (theirs, mine):
            error = events[-2].pop("error")
            assert "the core has gone" in error["message"]
            assert (error["type"], error["param"]) == ("server_error", None)
    assert mine == theirs
    assert (usage is not None) == (counts and end is not None)


def test_the_official_client_reads_the_same_events_however_they_are_cut() -> None:
    rng = random.Random(8)
    outputs: list[tuple[str, str | None]] = [(text, None) for text in TEXTS]
    data = "".join(ours(outputs, {"id": "x"}, {"total_tokens": 3}, False)).encode()
    data = b": ping\n\n" + data.replace(b"\n\n", b"\r\n\r\n", 2)
    official = [
        json.loads(e.data) for e in SSEDecoder().iter_bytes(iter([data])) if e.data[0] == "{"
    ]
    assert len(official) == 7
    for _ in range(30):
        cuts = sorted({0, len(data), *(rng.randrange(len(data)) for _ in range(8))})
        pieces = [data[a:b] for a, b in pairwise(cuts)]
        assert list(read_events(pieces)) == official


def test_a_stop_string_that_was_missed_is_said_to_be_missed() -> None:
    case = text_stop_checker.across(random.Random(1))[0]
    steps = [["Hello", None], [" ", None], ["", "world"]]

    def said(shown: str) -> str:
        want, have = (
            [{"steps": answered, "end": None, "changed": None}]
            for answered in (steps, [*steps[:2], [shown, None]])
        )
        found = text_compare.scripts(case, want, have)
        assert found is not None
        return found.lines[-1]

    assert said("world") == (
        "matched: expected 'world', got None: no match was found where 'world' was complete"
    )
    assert said("").endswith("got None: the text is right, but matched was not set")


def yields_on(
    outputs: Generator[tuple[str, str | None]], envelope: Any, usage: Any
) -> Generator[str]:
    events = chat_events(outputs, envelope, usage)
    try:
        yield from events
    finally:
        yield "data: [DONE]\n\n"


def test_who_yields_after_the_client_left_is_told_so() -> None:
    case = text_sse.clients_gone(random.Random(1))[0]
    want, have = (
        text_sse.framed(case, wire.copy(text_streams.frame(part, case.payload, Context())))
        for part in ({"chat_events": chat_events}, {"chat_events": yields_on})
    )
    found = text_sse.frames(case, want, have)
    assert found is not None
    assert "the client left after 2 events" in found.lines[-1]
    assert "it yielded once more" in found.lines[-1]


def test_an_engine_takes_a_tokenizer_only_with_a_runner() -> None:
    with pytest.raises(ValueError, match="tokenizer goes with a runner"):
        LLMEngine(tokenizer=light_tokenizer("byte_level"))
