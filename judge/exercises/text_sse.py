"""Owns the checks, hints and known mistakes of `text.sse`."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from judge import compare
from judge.api import Case, Check, Details, Difference, Mistake
from judge.wire import Raised

FRAME, READ = "judge.text_streams:frame", "judge.text_streams:read"
EMOJI = "\N{WAVING HAND SIGN}"
SHOWN = 120
IGNORED = "generator ignored GeneratorExit"  # Python's words where close() meets another yield


def answer(
    label: str, rng: random.Random, outputs: Sequence[Any], *, usage: bool = False,
    fails: str | None = None, leaves: int | None = None,
) -> Case:  # fmt: skip
    envelope = {
        "id": f"chatcmpl-{rng.randrange(10**6)}",
        "object": "chat.completion.chunk",
        "created": rng.randrange(10**9),
        "model": rng.choice(["small", "a model"]),
    }
    counts = {"prompt_tokens": 5, "completion_tokens": len(outputs)}
    payload = {
        "outputs": [list(output) for output in outputs],
        "fails": fails,
        "envelope": envelope,
        "usage": {**counts, "total_tokens": 5 + len(outputs)} if usage else None,
        "leaves": leaves,
    }
    return Case(label, payload)


def words(rng: random.Random, reason: str | None = "stop", count: int = 3) -> list[Any]:
    texts = [rng.choice([" a", " word", "Hello", " sea"]) for _ in range(count)]
    return [*((text, None) for text in texts), (rng.choice([".", "!"]), reason)]


def whole(rng: random.Random) -> Sequence[Case]:
    return [
        answer("an answer", rng, words(rng)),
        answer("with usage", rng, words(rng), usage=True),
        answer("one output", rng, [("Hi", "stop")]),
        answer("no outputs", rng, []),
    ]


def odd_texts(rng: random.Random) -> Sequence[Case]:
    """What would break a frame that is put together by hand."""
    texts = ["two\nlines", '"quoted" and \\', "data: x\n\n", f"{EMOJI} \u4f60", "\r", "\u2028"]
    return [answer("text with line breaks and quotes", rng, [(t, None) for t in texts])]


def reasons(rng: random.Random) -> Sequence[Case]:
    cases = [
        answer(f"reason {reason}", rng, words(rng, reason, 1))
        for reason in ("stop", "length", "capacity", "abort")
    ]
    held = [("a", None), ("", None), ("b", None), ("", "length")]
    return [*cases, answer("outputs whose text is held back", rng, held)]


def failures(rng: random.Random) -> Sequence[Case]:
    why = rng.choice(["the engine process ended", "the request took longer than 5 s"])
    return [
        answer("it fails in mid-stream", rng, words(rng, None), fails=why),
        answer("it fails, and usage was asked for", rng, words(rng, None), fails=why, usage=True),
        answer("it fails before the first output", rng, [], fails=why),
    ]


def clients_gone(rng: random.Random) -> Sequence[Case]:
    return [
        answer(
            f"the client leaves after event {leaves}", rng, words(rng), leaves=leaves, usage=True
        )
        for leaves in (2, 1, 4)
    ]


def framed(case: Case, answer: Any) -> Any:
    """Events as JSON says them: how it is written is free."""
    events = [[_parsed(event), taken] for event, taken in answer["events"]]
    return {**answer, "events": events}


def _parsed(event: Any) -> Any:
    if type(event) is not str:
        return _wrong("it is no string", compare.show(event, SHOWN))
    if not event.startswith("data: "):
        return _wrong("it does not begin with 'data: '", event[:40])
    if not event.endswith("\n\n"):
        return _wrong("it does not end with an empty line", event[-40:])
    body = event[6:-2]
    if "\n" in body or "\r" in body:
        place = min(body.find(c) for c in "\n\r" if c in body)
        return _wrong("it has a line break inside", body[max(0, place - 20) : place + 20])
    if body == "[DONE]":
        return body
    try:
        return json.loads(body)
    except ValueError as error:
        return _wrong(f"its data are no JSON ({error})", body[-60:])


def _wrong(why: str, where: str) -> dict[str, str]:
    return {"no event": why, "where": where}


def without_place(answer: Any) -> Any:
    """What programs that make one mistake have in common: not how they write their JSON."""
    events = [
        [{k: v for k, v in event.items() if k != "where"} if isinstance(event, dict) else event,
         taken] for event, taken in answer["events"]
    ]  # fmt: skip
    return {**answer, "events": events}


def frames(case: Case, expected: Any, got: Any) -> Difference | None:
    """Compare for `chat_events`."""
    outputs = case.payload["outputs"]
    place = (case.label, f"outputs: {compare.show(outputs, SHOWN)}")
    if isinstance(got["end"], Raised) and len(got["events"]) <= len(expected["events"]):
        number = len(got["events"])
        if IGNORED in got["end"].message:
            late = (f"the client left after {compare.counted(number, 'event')}, and the generator "
                    "was closed; it yielded once more all the same, in a finally or because it "
                    "caught GeneratorExit")  # fmt: skip
            return Difference((*place, late), "error", got["end"].frames)
        return Difference(
            (*place, f"after {compare.counted(number, 'event')} it raised "
             f"{compare.show(got['end'])}", *compare.about_raised(got["end"])),
            "error", got["end"].frames,
        )  # fmt: skip
    for number, (want, have) in enumerate(zip(expected["events"], got["events"], strict=False)):
        line = _event(number, want, have)
        if line is not None:
            return Difference((*place, *line))
    if len(got["events"]) != len(expected["events"]):
        return Difference((*place, _count(expected["events"], got["events"])))
    if not got["closed"]:
        return Difference((*place, "`outputs` was not closed, so the engine goes on computing"))
    if got["changed"]:
        return Difference((*place, "the events are right, but the call changed its arguments"))
    return None


def _event(number: int, want: Any, have: Any) -> list[str] | None:
    if not compare.same(want[0], have[0]):
        wanted, found = (_written(event) for event in _apart(want[0], have[0]))
        return [f"event {number}: expected {wanted}", f"         got      {found}"]
    if have[1] > want[1]:
        return [f"event {number} is right, but came after {compare.counted(have[1], 'output')} "
                f"had been asked for, not {want[1]}: the client waits for nothing"]  # fmt: skip
    return None


def _apart(want: Any, have: Any) -> tuple[Any, Any]:
    """Two events without what they have in common."""
    if not isinstance(want, dict) or not isinstance(have, dict):
        return want, have
    alike = [key for key in want if compare.same(want[key], have.get(key))]
    return tuple({k: v for k, v in e.items() if k not in alike} for e in (want, have))  # type: ignore[return-value]


def _written(event: Any) -> str:
    if isinstance(event, dict) and "no event" in event:
        return f"no event: {event['no event']}: {event['where']!r}"
    text = event if event == "[DONE]" else json.dumps(event, ensure_ascii=False)
    return f"{text[:160]} ..." if len(text) > 160 else text


def _count(want: list[Any], have: list[Any]) -> str:
    if len(have) > len(want):
        return f"an event too many: {_written(have[len(want)][0])}"
    return f"event {len(have)} is missing: {_written(want[len(have)][0])}"


def body(rng: random.Random, texts: Sequence[str], end: str = "\n") -> bytes:
    """A stream as bytes."""
    events = [json.dumps({"text": t, "n": rng.randrange(99)}, ensure_ascii=False) for t in texts]
    lines = [f"data: {event}{end}{end}" for event in (*events, "[DONE]")]
    return "".join(lines).encode()


def network(label: str, *pieces: bytes) -> Case:
    shown = compare.show(list(pieces), SHOWN)
    return Case(f"{label}: {shown}", {"pieces": [list(piece) for piece in pieces]})


def cut(rng: random.Random, data: bytes, count: int) -> list[bytes]:
    borders = sorted([0, len(data), *(rng.randint(0, len(data)) for _ in range(count - 1))])
    return [data[a:b] for a, b in pairwise(borders)]


def read_whole(rng: random.Random) -> Sequence[Case]:
    data = body(rng, ["a", "b", "c"])
    events = [event + b"\n\n" for event in data.split(b"\n\n")[:-1]]
    return [
        network("an event in each piece", *events),
        network("all in one piece", data),
        network("nothing but the end", b"data: [DONE]\n\n"),
    ]


def read_cut(rng: random.Random) -> Sequence[Case]:
    data = body(rng, ["one", f"{EMOJI}\u4f60", "\u2028 and \x85", "end"])
    return [
        network("two pieces", *cut(rng, data, 2)),
        network("a piece for each byte", *(data[i : i + 1] for i in range(len(data)))),
        network("pieces at random", *cut(rng, data, 12)),
    ]


def read_odd(rng: random.Random) -> Sequence[Case]:
    done = b"data: [DONE]\n\n"
    return [
        network("line ends \\r\\n", *cut(rng, body(rng, ["a", "b"], "\r\n"), 5)),
        network("no space behind the colon", b'data:{"a": 1}\n\n', done),
        network("comments, to keep the connection open", b": ping\n\n", b'data: {"a": 1}\n\n',
                b": ping\n\n", done),
        network("other fields", b'event: message\nid: 7\ndata: {"a": 1}\n\nretry: 10\n\n', done),
        network("data on two lines", b'data: {"a":\ndata: 1}\n\n', done),
        network("events behind the end", b'data: {"a": 1}\n\n', done, b'data: {"a": 2}\n\n'),
    ]  # fmt: skip


def read_broken(rng: random.Random) -> Sequence[Case]:
    data = body(rng, ["a", "b"])
    short = data[: -len(b"data: [DONE]\n\n")]
    return [
        network("it breaks off between events", *cut(rng, short, 3)),
        network("it breaks off inside an event", short[: -rng.randint(3, 9)]),
        network("no bytes at all"),
    ]


def reading(case: Case, expected: Any, got: Any) -> Difference | None:
    """Compare for `read_events`."""
    place = (case.label,)
    for number, want in enumerate(expected["events"]):
        if number >= len(got["events"]):
            raised = got["end"]
            if isinstance(raised, Raised):
                line = f"event {number}: expected {_written(want[0])}, but it raised"
                return Difference((*place, line, compare.show(raised)), "error", raised.frames)
            return Difference((*place, f"event {number} is missing: {_written(want[0])}"))
        have = got["events"][number]
        if not compare.same(want[0], have[0]):
            lines = f"event {number}: expected {_written(want[0])}", f"got {compare.show(have[0])}"
            return Difference((*place, *lines))
        if have[1] != want[1]:
            line = (f"event {number} was complete with piece {want[1]}, and came after "
                    f"{have[1]} had been asked for")  # fmt: skip
            return Difference((*place, line))
    if len(got["events"]) > len(expected["events"]):
        extra = compare.show(got["events"][len(expected["events"])][0])
        return Difference((*place, f"an event too many: {extra}"))
    if not compare.same(expected["end"], got["end"]):
        return compare.error_or_wrong(expected["end"], got["end"], (*place, "at the end"))
    if got["taken"] > expected["taken"]:
        return Difference((*place, "it goes on reading behind [DONE]: the connection stays open"))
    return None


def _frame(name: str, title: str, cases: Any) -> Check:
    return Check(name, title, FRAME, cases, frames, normalize=framed, fingerprint=without_place)


def _read(name: str, title: str, cases: Any) -> Check:
    return Check(name, title, READ, cases, reading)


READING_HINTS = (
    "A piece of bytes may end anywhere. What can you find in bytes without knowing where "
    "characters begin, and what has to be kept for the next piece?",
    "The byte 0x0A never is a part of another character in UTF-8: so bytes can be cut into lines "
    "before anything is decoded. Only what follows the last line end is kept. An event ends at an "
    "empty line, and it may have been put together from several lines.",
    "kept = no bytes; data = no lines\n"
    "for each piece: join it to what is kept, cut at line ends; what follows the last is kept\n"
    "    for each line, without its \\r, decoded:\n"
    "        it begins with data: ... note what follows\n"
    "        it is empty and something was noted: that is an event; [DONE]? leave. Else JSON\n"
    "still here behind the last piece: the answer is not complete",
)

EXERCISE = Details(
    checks=(
        _frame("answers", "role, text, usage and [DONE], each as soon as it can be", whole),
        _frame("odd-texts", "line breaks and quotes in the text break no event", odd_texts),
        _frame("reasons", "finish reasons, and outputs without text", reasons),
        _frame("failures", "a failure in mid-stream is said in the stream", failures),
        _frame("clients-gone", "a client that leaves ends the request", clients_gone),
        _read("reading", "events come back as JSON, each as soon as it is complete", read_whole),
        _read("reading-cut", "bytes may be cut anywhere", read_cut),
        _read("reading-odd", "what else stands in such streams", read_odd),
        _read("reading-broken", "a stream without its end is an error", read_broken),
    ),
    hints=(
        "First chat_events (read_events has hints of its own, from its first failure on). What has "
        "the client when the second output is not there yet, and what does it know when the engine "
        "fails then? Which of the events may come only after all outputs, and which way of leaving "
        "a generator must not yield anything more?",
        "Everything in a chunk goes through json.dumps, which leaves no line break. An Exception "
        "out of `outputs` is an event; GeneratorExit is not an Exception, and nothing may be "
        "yielded after it. `outputs` is closed on all ways out: contextlib.closing does that.",
        "with outputs closed at the end, whatever happens:\n"
        "    try: yield the role\n"
        "        for each output: skip it if it says nothing, else yield its chunk\n"
        "        a usage asked for? yield it\n"
        "    an Exception: yield the error\n"
        "    yield the end, not in a finally",
    ),
    hints_for=dict.fromkeys(
        ("reading", "reading-cut", "reading-odd", "reading-broken"), READING_HINTS
    ),
    mistakes=tuple(
        Mistake(name, {symbol: f"judge.mistakes.text_sse:{function}"})
        for name, symbol, function in (
            ("there is no [DONE]", "chat_events", "no_done"),
            ("there is no event for the role", "chat_events", "no_role"),
            ("the JSON is put together by hand", "chat_events", "by_hand"),
            ("an event ends with one line break", "chat_events", "one_line_break"),
            ("all outputs are read before the first event", "chat_events", "collects"),
            ("a failure of the engine comes through", "chat_events", "lets_through"),
            ("[DONE] is missing after an error", "chat_events", "error_ends_it"),
            ("usage follows an error", "chat_events", "usage_after_error"),
            ("the engine's reasons are sent as they are", "chat_events", "raw_reasons"),
            ("outputs that say nothing are sent", "chat_events", "empty_events"),
            ("something is yielded after the client has gone", "chat_events", "done_in_finally"),
            ("`outputs` is left open when the client goes", "chat_events", "leaves_open"),
            ("usage comes with an empty choice", "chat_events", "usage_with_choice"),
            ("outputs without text are left out, with their reason", "chat_events", "loses_reason"),
            ("each piece is taken for whole events", "read_events", "piece_by_piece"),
            ("each piece is decoded alone", "read_events", "decodes_pieces"),
            ("lines are split as str.splitlines does", "read_events", "splits_lines"),
            ("line ends \\r\\n are not known", "read_events", "newline_only"),
            ("the space behind the colon is demanded", "read_events", "wants_space"),
            ("everything is read before the first event", "read_events", "reads_all"),
            ("every line is an event", "read_events", "line_is_event"),
            ("a stream without its end is taken for complete", "read_events", "no_error"),
            ("[DONE] is taken for JSON", "read_events", "done_is_json"),
            ("it goes on reading behind [DONE]", "read_events", "reads_on"),
        )
    ),
)  # fmt: skip
