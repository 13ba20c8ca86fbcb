"""The official client against the real server: every kind of call that it makes."""

from __future__ import annotations

import asyncio
import subprocess
from typing import Any

import httpx
import openai
import pytest

from mini_engine import LLMEngine, SamplingParams
from tests.serve.server import Server, run_async

MODEL = "smollm2-135m-instruct"
ASK = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture(params=["server", "in_process"])
def client(request: pytest.FixtureRequest) -> openai.OpenAI:
    server: Server = request.getfixturevalue(request.param)
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """What the engine alone says."""
    with LLMEngine(device="cpu", max_model_len=256, num_blocks=96) as engine:
        chat = engine.generate([engine.chat_prompt(ASK)], SamplingParams(max_tokens=12))[0]
        drawn = engine.generate(
            [engine.encode("Once upon a time")],
            SamplingParams(max_tokens=9, temperature=0.8, top_p=0.9, seed=5, logprobs=2),
        )[0]
        echoed = engine.generate(
            [engine.encode("Once upon a time")],
            SamplingParams(
                max_tokens=9, temperature=0.8, top_p=0.9, seed=5, logprobs=2, prompt_logprobs=2
            ),
        )[0]
    return {"chat": chat, "drawn": drawn, "echoed": echoed}


def test_chat_is_what_the_engine_alone_says(client: openai.OpenAI, answers: dict[str, Any]) -> None:
    found = client.chat.completions.create(
        model=MODEL, messages=ASK, max_completion_tokens=12, temperature=0, user="someone",
        metadata={"a": "b"}, store=False,
    )  # fmt: skip
    choice = found.choices[0]
    assert choice.message.content == answers["chat"].text
    assert choice.message.role == "assistant"
    assert choice.finish_reason == answers["chat"].finish_reason == "stop"
    assert found.usage.completion_tokens == len(answers["chat"].token_ids)
    assert found.usage.prompt_tokens == len(answers["chat"].prompt_token_ids)


def test_a_chat_stream_says_the_same(client: openai.OpenAI, answers: dict[str, Any]) -> None:
    chunks = list(
        client.chat.completions.create(
            model=MODEL, messages=ASK, max_tokens=12, temperature=0, stream=True,
            stream_options={"include_usage": True},
        )
    )  # fmt: skip
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == answers["chat"].text
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].usage.completion_tokens == len(answers["chat"].token_ids)
    assert len({chunk.id for chunk in chunks}) == 1


def test_completions_with_seed_and_logprobs(client: openai.OpenAI, answers: dict[str, Any]) -> None:
    ask: dict[str, Any] = {
        "model": MODEL, "prompt": "Once upon a time", "max_tokens": 9, "temperature": 0.8,
        "top_p": 0.9, "seed": 5, "logprobs": 2,
    }  # fmt: skip
    drawn = answers["drawn"]
    found = client.completions.create(**ask).choices[0]
    assert found.text == drawn.text
    assert found.finish_reason == "length"
    assert len(found.logprobs.tokens) == len(drawn.token_ids)
    expected = [entry.logprob for entry in drawn.logprobs]
    assert found.logprobs.token_logprobs == pytest.approx(expected, abs=1e-3)
    assert "".join(found.logprobs.tokens) == found.text
    assert all(len(top) == 2 for top in found.logprobs.top_logprobs)
    pieces = list(client.completions.create(**ask, stream=True))
    assert "".join(p.choices[0].text for p in pieces) == drawn.text
    assert sum(len(p.choices[0].logprobs.tokens) for p in pieces if p.choices[0].logprobs) == 9


def test_echo_puts_the_prompt_in_front(client: openai.OpenAI, answers: dict[str, Any]) -> None:
    ask: dict[str, Any] = {
        "model": MODEL, "prompt": "Once upon a time", "max_tokens": 9, "temperature": 0.8,
        "top_p": 0.9, "seed": 5, "logprobs": 2, "echo": True,
    }  # fmt: skip
    found = client.completions.create(**ask)
    choice = found.choices[0]
    assert choice.text == "Once upon a time" + answers["drawn"].text
    told, expected = choice.logprobs, answers["echoed"]
    assert told.tokens[:4] == ["Once", " upon", " a", " time"]
    assert "".join(told.tokens) == choice.text
    assert told.text_offset[:5] == [0, 4, 9, 11, 16]
    assert told.token_logprobs[0] is told.top_logprobs[0] is None  # nothing stands before it
    values = [entry.logprob for entry in [*expected.prompt_logprobs[1:], *expected.logprobs]]
    assert told.token_logprobs[1:] == pytest.approx(values, abs=1e-3)
    assert all(len(top) >= 2 for top in told.top_logprobs[1:])
    assert found.usage.completion_tokens == 9
    pieces = [piece.choices[0] for piece in client.completions.create(**ask, stream=True)]
    assert "".join(piece.text for piece in pieces) == choice.text
    streamed = [piece.logprobs for piece in pieces if piece.logprobs]
    assert [token for part in streamed for token in part.tokens] == told.tokens
    assert [offset for part in streamed for offset in part.text_offset] == told.text_offset


def test_echo_of_token_ids_and_of_several_prompts(client: openai.OpenAI) -> None:
    ask: dict[str, Any] = {"model": MODEL, "max_tokens": 3, "temperature": 0.0, "echo": True}
    alone = client.completions.create(**ask, prompt="The sea").choices[0]
    ids = [row["tokens"] for row in (tokens_of(client, "One, two,"), tokens_of(client, "The sea"))]
    found = client.completions.create(**ask, prompt=ids)
    assert found.choices[1].text == alone.text
    assert found.choices[1].logprobs is None
    assert [choice.text[:7] for choice in found.choices] == ["One, tw", "The sea"]
    streamed = {0: "", 1: ""}
    for piece in client.completions.create(**ask, prompt=ids, stream=True):
        streamed[piece.choices[0].index] += piece.choices[0].text
    assert streamed == {choice.index: choice.text for choice in found.choices}


def tokens_of(client: openai.OpenAI, text: str) -> dict[str, Any]:
    """What /tokenize says."""
    address = str(client.base_url).removesuffix("/v1/") + "/tokenize"
    return client.post(address, body={"prompt": text}, cast_to=dict[str, Any])


def test_several_prompts_and_choices(client: openai.OpenAI) -> None:
    ask: dict[str, Any] = {"model": MODEL, "max_tokens": 4, "temperature": 1.0, "seed": 3, "n": 2}
    found = client.completions.create(**ask, prompt=["One, two,", "The sea"])
    assert [choice.index for choice in found.choices] == [0, 1, 2, 3]
    alone = client.completions.create(**ask, prompt="The sea")
    assert [c.text for c in found.choices[2:]] == [c.text for c in alone.choices]
    assert found.usage.completion_tokens == 16
    streamed: dict[int, str] = {}
    for piece in client.completions.create(**ask, prompt=["One, two,", "The sea"], stream=True):
        for choice in piece.choices:
            streamed[choice.index] = streamed.get(choice.index, "") + choice.text
    assert streamed == {choice.index: choice.text for choice in found.choices}


def test_chat_logprobs(client: openai.OpenAI) -> None:
    found = client.chat.completions.create(
        model=MODEL, messages=ASK, max_tokens=3, temperature=0, logprobs=True, top_logprobs=2
    )
    entries = found.choices[0].logprobs.content
    assert "".join(entry.token for entry in entries) == found.choices[0].message.content
    assert bytes(entries[0].bytes).decode() == entries[0].token
    assert all(entry.top_logprobs[0].token == entry.token for entry in entries)  # it was greedy
    assert all(len(entry.top_logprobs) == 2 for entry in entries)


@pytest.mark.parametrize("which", ["server", "in_process"])
def test_a_logit_bias_reaches_the_engine(which: str, request: pytest.FixtureRequest) -> None:
    running: Server = request.getfixturevalue(which)
    client = openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0)
    found = client.completions.create(
        model=MODEL, prompt="One", max_tokens=3, temperature=0, logit_bias={"260": 100}
    )
    assert found.choices[0].text == " the" * 3  # token 260
    assert httpx.get(f"{running.url}/health").status_code == 200


def test_stop_strings(client: openai.OpenAI) -> None:
    for stream in (False, True):
        found = client.chat.completions.create(
            model=MODEL, messages=ASK, max_tokens=12, temperature=0, stop=["Paris"], stream=stream
        )
        if stream:
            text = "".join(c.choices[0].delta.content or "" for c in found)
        else:
            text = found.choices[0].message.content
            assert found.choices[0].finish_reason == "stop"
        assert text == "The capital of France is "


BAD: list[tuple[dict[str, Any], type[openai.APIStatusError], str]] = [
    ({"temperature": -1}, openai.BadRequestError, "temperature must be 0 or more"),
    ({"model": "gpt-4o"}, openai.NotFoundError, "there is no 'gpt-4o' here"),
    ({"tools": [{"type": "function", "function": {"name": "f"}}]}, openai.BadRequestError, "tools"),
    ({"response_format": {"type": "json_object"}}, openai.BadRequestError, "structured output"),
    ({"top_logprobs": 3}, openai.BadRequestError, "needs logprobs to be true"),
    ({"n": 2, "temperature": 0}, openai.BadRequestError, "would give 2 equal choices"),
    ({"n": 10**12, "temperature": 1}, openai.BadRequestError, "less than or equal to 128"),
    ({"max_tokens": 10**23}, openai.BadRequestError, "less than 9223372036854775808"),
    ({"n": 129, "temperature": 1}, openai.BadRequestError, "less than or equal to 128"),
    ({"extra_body": {"top_k": 10**23}}, openai.BadRequestError, "less than 9223372036854775808"),
    ({"logit_bias": {"x": 1}}, openai.BadRequestError, "keys are token ids"),
    ({"logit_bias": {"60000": 1}}, openai.BadRequestError, "logit_bias names token 60000"),
    ({"messages": []}, openai.BadRequestError, "messages"),
    ({"messages": [{"role": "user", "content": "x " * 400}]}, openai.BadRequestError,
     "max_model_len is 256"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
     openai.BadRequestError, "reads text only"),
]  # fmt: skip


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("fields", "error", "message"), BAD, ids=[str(row[2]) for row in BAD])
def test_errors_are_openais(
    server: Server, fields: dict[str, Any], error: type[openai.APIStatusError], message: str,
    stream: bool,
) -> None:  # fmt: skip
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
    ask: dict[str, Any] = {"model": MODEL, "messages": ASK, "max_tokens": 3, **fields}
    with pytest.raises(error, match=message) as caught:
        client.chat.completions.create(**ask, stream=stream)
    assert caught.value.body["type"] in ("invalid_request_error", "not_found_error")


def test_the_asynchronous_client_and_many_at_once(server: Server) -> None:
    async def run() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client:

            async def one(number: int) -> str:
                stream = await client.completions.create(
                    model=MODEL, prompt=f"{number}, {number + 1},", max_tokens=6, temperature=0,
                    stream=True,
                )  # fmt: skip
                return "".join([chunk.choices[0].text async for chunk in stream])

            alone = [await one(number) for number in range(3)]
            together = await asyncio.gather(*(one(number) for number in range(12)))
            assert together[:3] == alone
            return together

    assert len(set(run_async(run()))) > 6
    server.wait_for("kv_cache_usage", 0.0)


def test_curl_and_the_models_list(server: Server) -> None:
    listed = subprocess.run(
        ["curl", "-sS", f"{server.url}/v1/models"], capture_output=True, text=True, check=True
    )
    assert MODEL in listed.stdout
    told = server.post("/tokenize", prompt="Hello world").json()
    assert told["count"] == len(told["tokens"]) == 2
    chat = server.post("/tokenize", messages=ASK).json()
    assert chat["count"] > told["count"]
