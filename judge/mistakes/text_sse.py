"""Owns the known mistakes of `text.sse`: each is wrong in one way."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

from judge.solutions import text as right

Outputs = Generator[tuple[str, str | None]]
Envelope = Mapping[str, Any]
Usage = Mapping[str, int] | None
DONE = "data: [DONE]\n\n"


def no_done(outputs: Outputs, envelope: Envelope, usage: Usage = None) -> Iterator[str]:
    with closing(right.chat_events(outputs, envelope, usage)) as events:  # type: ignore[type-var]
        yield from (event for event in events if event != DONE)


def no_role(outputs: Outputs, envelope: Envelope, usage: Usage = None) -> Iterator[str]:
    with closing(right.chat_events(outputs, envelope, usage)) as events:  # type: ignore[type-var]
        yield from (event for event in events if '"assistant"' not in event)


def by_hand(outputs: Outputs, envelope: Envelope, usage: Usage = None) -> Iterator[str]:
    """Puts the text between quotes as it is."""
    with closing(right.chat_events(outputs, envelope, usage)) as events:  # type: ignore[type-var]
        for event in events:
            data = event.removeprefix("data: ").removesuffix("\n\n")
            content = None if event == DONE else _content(json.loads(data))
            if content:
                event = event.replace(json.dumps(content, ensure_ascii=False), f'"{content}"')
            yield event


def _content(chunk: Any) -> Any:
    choices = chunk.get("choices")
    return choices[0]["delta"].get("content") if choices else None


def one_line_break(outputs: Outputs, envelope: Envelope, usage: Usage = None) -> Iterator[str]:
    with closing(right.chat_events(outputs, envelope, usage)) as events:  # type: ignore[type-var]
        yield from (event[:-1] for event in events)


def collects(outputs: Outputs, envelope: Envelope, usage: Usage = None) -> Iterator[str]:
    yield from list(right.chat_events(outputs, envelope, usage))


def _plain(outputs: Outputs, envelope: Envelope, usage: Usage = None) -> Iterator[str]:
    """The events of an answer in which nothing goes wrong."""
    yield _chunk(envelope, {"role": "assistant", "content": ""}, None)
    for text, reason in outputs:
        if text or reason is not None:
            delta = {"content": text} if text else {}
            yield _chunk(envelope, delta, right.REASONS.get(reason or ""))
    if usage is not None:
        yield _event({**envelope, "choices": [], "usage": dict(usage)})


def _event(data: Any) -> str:
    return f"data: {json.dumps(data)}\n\n"


def _chunk(envelope: Envelope, delta: Any, reason: str | None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return _event({**envelope, "choices": [choice]})


def _failure(error: Exception) -> str:
    what = {"message": str(error), "type": "server_error", "param": None, "code": 500}
    return _event({"error": what})


def lets_through(outputs: Outputs, envelope: Envelope, usage: Usage = None) -> Iterator[str]:
    with closing(outputs):
        yield from _plain(outputs, envelope, usage)
        yield DONE


def error_ends_it(outputs: Outputs, envelope: Envelope, usage: Usage = None) -> Iterator[str]:
    with closing(outputs):
        try:
            yield from _plain(outputs, envelope, usage)
        except Exception as error:
            yield _failure(error)
            return
        yield DONE


def usage_after_error(outputs: Outputs, envelope: Envelope, usage: Usage = None) -> Iterator[str]:
    with closing(outputs):
        try:
            yield from _plain(outputs, envelope)
        except Exception as error:
            yield _failure(error)
        if usage is not None:
            yield _event({**envelope, "choices": [], "usage": dict(usage)})
        yield DONE


def raw_reasons(outputs: Outputs, envelope: Envelope, usage: Usage = None) -> Iterator[str]:
    with closing(outputs):
        try:
            yield _chunk(envelope, {"role": "assistant", "content": ""}, None)
            for text, reason in outputs:
                if text or reason is not None:
                    yield _chunk(envelope, {"content": text} if text else {}, reason)
            if usage is not None:
                yield _event({**envelope, "choices": [], "usage": dict(usage)})
        except Exception as error:
            yield _failure(error)
        yield DONE


def empty_events(outputs: Outputs, envelope: Envelope, usage: Usage = None) -> Iterator[str]:
    with closing(outputs):
        try:
            yield _chunk(envelope, {"role": "assistant", "content": ""}, None)
            for text, reason in outputs:
                delta = {"content": text} if text else {}
                yield _chunk(envelope, delta, right.REASONS.get(reason or ""))
            if usage is not None:
                yield _event({**envelope, "choices": [], "usage": dict(usage)})
        except Exception as error:
            yield _failure(error)
        yield DONE


def done_in_finally(outputs: Outputs, envelope: Envelope, usage: Usage = None) -> Iterator[str]:
    with closing(outputs):
        try:
            yield from _plain(outputs, envelope, usage)
        except Exception as error:
            yield _failure(error)
        finally:
            yield DONE


def leaves_open(outputs: Outputs, envelope: Envelope, usage: Usage = None) -> Iterator[str]:
    try:
        yield from _plain(outputs, envelope, usage)
    except Exception as error:
        yield _failure(error)
    yield DONE


def usage_with_choice(outputs: Outputs, envelope: Envelope, usage: Usage = None) -> Iterator[str]:
    with closing(outputs):
        try:
            yield from _plain(outputs, envelope)
            if usage is not None:
                choice = {"index": 0, "delta": {}, "finish_reason": None}
                yield _event({**envelope, "choices": [choice], "usage": dict(usage)})
        except Exception as error:
            yield _failure(error)
        yield DONE


def loses_reason(outputs: Outputs, envelope: Envelope, usage: Usage = None) -> Iterator[str]:
    with closing(outputs):
        said = ((text, reason) for text, reason in outputs if text)
        yield from right.chat_events(said, envelope, usage)


Pieces = Iterable[bytes]


def _events(lines: Iterable[str]) -> Iterator[Any]:
    """Right, once the lines are."""
    data: list[str] = []
    for line in lines:
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif line == "" and data:
            text, data = "\n".join(data), []
            if text == "[DONE]":
                return
            yield json.loads(text)
    raise ConnectionError("no end")


def _lines(pieces: Pieces) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines


def piece_by_piece(pieces: Pieces) -> Iterator[Any]:
    """What works as long as every piece happens to be one event or several."""
    for piece in pieces:
        for event in piece.decode().split("\n\n"):
            data = event.removeprefix("data: ")
            if data == "[DONE]":
                return
            if data:
                yield json.loads(data)


def decodes_pieces(pieces: Pieces) -> Iterator[Any]:
    def lines() -> Iterator[str]:
        rest = ""
        for piece in pieces:
            *whole, rest = (rest + piece.decode("utf-8")).split("\n")
            yield from (line.removesuffix("\r") for line in whole)

    yield from _events(lines())


def splits_lines(pieces: Pieces) -> Iterator[Any]:
    """Also ends a line at U+2028 and at U+0085, which JSON may hold as they are."""

    def lines() -> Iterator[str]:
        for line in _lines(pieces):
            yield from line.decode().removesuffix("\r").splitlines() or [""]

    yield from _events(lines())


def newline_only(pieces: Pieces) -> Iterator[Any]:
    yield from _events(line.decode() for line in _lines(pieces))


def wants_space(pieces: Pieces) -> Iterator[Any]:
    lines = (line.decode().removesuffix("\r") for line in _lines(pieces))
    yield from _events(line for line in lines if line == "" or line.startswith("data: "))


def reads_all(pieces: Pieces) -> Iterator[Any]:
    yield from right.read_events(list(pieces))


def line_is_event(pieces: Pieces) -> Iterator[Any]:
    for line in _lines(pieces):
        text = line.decode().removesuffix("\r")
        if text.startswith("data:"):
            if text[5:].strip() == "[DONE]":
                return
            yield json.loads(text[5:])
    raise ConnectionError("no end")


def no_error(pieces: Pieces) -> Iterator[Any]:
    try:
        yield from right.read_events(pieces)
    except ConnectionError:
        return


def done_is_json(pieces: Pieces) -> Iterator[Any]:
    data: list[str] = []
    for line in (line.decode().removesuffix("\r") for line in _lines(pieces)):
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif line == "" and data:
            text, data = "\n".join(data), []
            yield json.loads(text)
    raise ConnectionError("no end")


def reads_on(pieces: Pieces) -> Iterator[Any]:
    source = iter(pieces)
    yield from right.read_events(source)
    for _ in source:
        pass
