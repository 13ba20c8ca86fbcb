"""Owns the references of `text.sse`: a chat answer as server-sent events, and back."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

DONE = "[DONE]"
REASONS = {"stop": "stop", "length": "length", "capacity": "length"}


def chat_events(
    outputs: Generator[tuple[str, str | None]],
    envelope: Mapping[str, Any],
    usage: Mapping[str, int] | None = None,
) -> Iterator[str]:
    """Role, pieces of text, usage, [DONE]; an error takes the place of what is left.

    `outputs` is closed in the end, also if this generator is. The server's own is
    `Generation.events` in mini_engine/serve/generation.py.
    """
    with closing(outputs):
        try:
            yield _event(_chunk(envelope, {"role": "assistant", "content": ""}, None))
            for text, reason in outputs:
                if text or reason is not None:
                    delta = {"content": text} if text else {}
                    yield _event(_chunk(envelope, delta, REASONS.get(reason or "")))
            if usage is not None:
                yield _event({**envelope, "choices": [], "usage": dict(usage)})
        except Exception as error:  # too late for a status: the stream itself has to say it
            failure = {"message": str(error), "type": "server_error", "param": None, "code": 500}
            yield _event({"error": failure})
        yield f"data: {DONE}\n\n"


def _chunk(envelope: Mapping[str, Any], delta: Any, reason: str | None) -> dict[str, Any]:
    return {**envelope, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def _event(data: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n"


def read_events(pieces: Iterable[bytes]) -> Iterator[Any]:
    """The JSON of every event up to [DONE], each as soon as its last byte is there.

    Raises ConnectionError if the stream ends without [DONE]. Compare `SSEDecoder` in the official
    client's openai/_streaming.py.
    """
    data: list[str] = []
    for line in _lines(pieces):
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif line == "" and data:
            text, data = "\n".join(data), []
            if text == DONE:
                return
            yield json.loads(text)
    raise ConnectionError("the stream broke off before [DONE]")


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Lines as soon as they end; bytes are joined first, so that no character is cut."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r").decode("utf-8")
