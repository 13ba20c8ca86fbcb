"""Owns the checks of the text parts inside the engine: their requests, and what must come out.

Text, token ids, reasons and steps must be the reference's at the end. In between, no output may say
more than the reference's does, and ids never more than the text.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from judge import compare
from judge.api import Case, Check, Difference
from judge.models import REAL
from judge.wire import Raised

EMOJI = "\N{WAVING HAND SIGN}"
CHINESE = "\u4f60\u597d"


def request(name: str, output: str, **more: Any) -> dict[str, Any]:
    """A request of a payload; the prompt is the word hello."""
    plain = {"ask": "hello", "drop": 0, "max_tokens": 60, "stop": [], "include": False,
             "end": True, "step": 0}  # fmt: skip
    return {"id": name, "output": output, **plain, **more}


def workloads(rng: random.Random) -> Sequence[Case]:
    """Stop strings within, across and at the end of tokens; characters; ends of every kind."""
    step = rng.randrange(1, 4)
    stops = [
        request("A", "hello world is the user", stop=["world"]),
        request("B", "hello world is the user", stop=["world"], include=True, step=step),
        request("C", "the user is a hell", stop=["a", "is"], step=step),
        request("D", "wor wor wor", stop=["world"]),
        request("E", "hello worl", ask="hello world", stop=["world"]),
        request("F", "he is", ask="hello wor", stop=["world"]),
        request("G", "is the world", stop=["world"], max_tokens=200),
    ]
    short = rng.randint(2, 5)
    texts = [
        request("A", f"he {EMOJI} is {CHINESE}"),
        request("B", f"is {EMOJI}", drop=1, end=False, max_tokens=4, step=step),
        request("C", f"{CHINESE} the", end=False, max_tokens=short),
        request("D", f"the {CHINESE}{EMOJI} hello", stop=[EMOJI]),
        request("E", "hello", ask=f"a {EMOJI}", step=step),
    ]
    return [
        Case(f"{label}, tokenizer {kind}", {"model": kind, "requests": requests})
        for kind in ("byte_level", "sentencepiece_like")
        for label, requests in (("stop strings", stops), ("characters and ends", texts))
    ]


def real_requests(rng: random.Random) -> Sequence[Case]:
    """Two that end early, at a stop string and at max_tokens, with what SmolLM2 really says."""
    asks = ["The capital of France is", "Emojis: \U0001f600 \U0001f601 \U0001f602", "One, two,"]
    requests = [
        request(f"request-{number}", "", ask=ask, max_tokens=rng.randint(8, 14), end=False,
                stop=[". ", " the"] if number == 0 else [])
        for number, ask in enumerate(asks)
    ]  # fmt: skip
    return [Case("SmolLM2, three requests", {"model": REAL, "requests": requests})]


def served(case: Case, expected: Any, got: Any) -> Difference | None:
    """Compare for `judge.text_engine`."""
    place = f"inside the engine: {case.label}"
    if isinstance(got, Raised):
        line = f"the engine stopped: {compare.show(got)}"
        return Difference((place, line, *compare.about_raised(got)), "error", got.frames)
    for name, want in expected["outputs"].items():
        asked = next(r for r in case.payload["requests"] if r["id"] == name)
        longest = max([2, *map(len, asked["stop"])])  # tokens that a whole program may hold back
        wrong = _request(want, got["outputs"].get(name), longest)
        if wrong is not None:
            stop = f", stop {asked['stop']!r}" if asked["stop"] else ""
            return Difference((place, f"request {name}{stop}: {wrong}"))
    for name, words in (("steps", "steps"), ("free", "free blocks at the end")):
        if got[name] != expected[name]:
            return Difference((place, f"expected {expected[name]} {words}, got {got[name]}"))
    return None


def _request(want: Any, have: Any, longest: int) -> str | None:
    """What is wrong with the outputs of one request, or None."""
    if have is None:
        return "it never ended"
    text, mine = ("".join(str(new) for new, _ in outputs) for outputs in (want[0], have[0]))
    if mine != text:
        return f"expected the text {text!r}, got {mine!r}"
    for words, number in (("reason", 2), ("stop", 3)):
        if not compare.same(want[number], have[number]):
            shown = compare.show(want[number]), compare.show(have[number])
            return f"the text is right; expected {words} {shown[0]}, got {shown[1]}"
    if want[1] != have[1]:
        return f"expected {len(want[1])} token ids, got {len(have[1])}: {have[1]}"
    return _outputs(want, have, longest)


def _outputs(want: Any, have: Any, longest: int) -> str | None:
    """What is wrong between the first and the last output."""
    so_far, count = "", 0
    for number, (new, num_ids) in enumerate(have[0][:-1]):
        so_far, count = so_far + new, count + num_ids
        decoded = want[4][min(count, len(want[4]) - 1)]
        if len(decoded) > len(so_far):
            return (f"output {number} has {compare.counted(count, 'token id')} so far, which say "
                    f"{decoded!r}, but the text is {so_far!r}")  # fmt: skip
    most = max(num_ids for _, num_ids in want[0])
    if have[0][-1][1] > most + longest:
        return f"{have[0][-1][1]} token ids were held back until the last output; {most} are enough"
    return None


def scripted_check() -> Check:
    """The part inside the engine, with made-up tokens of a small tokenizer."""
    return Check("engine", "inside the engine, with tokens made up beforehand",
                 "judge.text_engine:scripted", workloads, served, last=True)  # fmt: skip


def smollm2_check() -> Check:
    """The part inside the engine, with SmolLM2."""
    return Check("engine-smollm2", "inside the engine, with SmolLM2", "judge.text_engine:smollm2",
                 real_requests, served, needs=("smollm2",), last=True, limit_s=60.0)  # fmt: skip
