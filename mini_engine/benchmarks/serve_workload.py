"""Owns what a load test sends and when: lengths, prompts, moments of arrival, traces in a file.

A length is given as 128 (or constant:128), uniform:LOWEST:HIGHEST, or lognormal:MEDIAN:SIGMA with,
if wanted, :MOST, above which it is cut. Prompts are random common English words, each of which is
one token in the usual vocabularies, so that a prompt has about as many tokens as words for any
model; reports show what the server counted. Everything is drawn from a seed.

A trace is a file of JSON lines, one for each request:

    {"timestamp": 0.25, "prompt_tokens": 120, "max_tokens": 64}

`timestamp` is in seconds, from wherever; the first request is sent at once. Instead of
`prompt_tokens`, a `prompt` gives the text itself. Either all lines have a timestamp or none.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mini_engine.benchmarks.virtual import random_arrivals

WORDS = """
the of and to in is it for on was with as at by be this that from or are an not have his they you
one all we can her has there been if more when will would who so no said what up its about into than
them out time my only could new do now
""".split()  # noqa: SIM905, a list of words is read more easily than a list of quotes
FIELDS = ("timestamp", "prompt", "prompt_tokens", "max_tokens")
ARRIVALS = ("poisson", "burst", "even")


@dataclass(frozen=True)
class LoadRequest:
    """One request to send: its text, the most tokens of its answer, and its moment, if any."""

    prompt: str
    max_tokens: int
    timestamp: float | None = None


@dataclass(frozen=True)
class Lengths:
    """A distribution of lengths in tokens, 1 or more. `parse` reads it as users write it."""

    kind: str
    numbers: tuple[float, ...]

    @classmethod
    def parse(cls, text: str) -> Lengths:
        """Raises ValueError for what is no distribution."""
        kind, *words = text.split(":") if ":" in text else ("constant", text)
        shapes = {"constant": (1,), "uniform": (2,), "lognormal": (2, 3)}
        try:
            numbers = tuple(float(word) for word in words)
        except ValueError:
            numbers = ()
        good = len(numbers) in shapes.get(kind, ()) and all(map(math.isfinite, numbers))
        if good and kind == "lognormal":
            good = numbers[0] >= 1 and numbers[1] >= 0 and numbers[2:] >= (1,) * len(numbers[2:])
        elif good:
            good = all(n >= 1 and n == int(n) for n in numbers) and list(numbers) == sorted(numbers)
        if not good:
            raise ValueError(
                f"{text!r} is no length; give 128, uniform:16:256 (lowest, highest), or "
                "lognormal:128:0.5:1024 (median, sigma and, if wanted, the most), all 1 or more"
            )
        return cls(kind, numbers)

    def draw(self, rng: random.Random) -> int:
        """One length."""
        if self.kind == "constant":
            return int(self.numbers[0])
        if self.kind == "uniform":
            return rng.randint(int(self.numbers[0]), int(self.numbers[1]))
        median, sigma, *most = self.numbers
        drawn = max(1, round(median * math.exp(rng.gauss(0.0, sigma))))
        return min([drawn, *(int(limit) for limit in most)])


def random_text(rng: random.Random, num_words: int) -> str:
    """So many common words."""
    return " ".join(rng.choices(WORDS, k=num_words))


def random_requests(prompt: Lengths, output: Lengths, count: int, seed: int) -> list[LoadRequest]:
    """`count` requests; the first n are the same for every count of n or more."""
    rng = random.Random(seed)
    return [LoadRequest(random_text(rng, prompt.draw(rng)), output.draw(rng)) for _ in range(count)]


def arrivals(kind: str, count: int, rate: float, burst: int, seed: int) -> list[float]:
    """Moments in seconds, from 0 on, `rate` a second on average, whatever the kind.

    "poisson" draws every gap by itself; "burst" sends `burst` requests at one moment and draws the
    gaps between those moments; "even" leaves equal gaps. Raises ValueError for a rate that is not
    above 0, a burst below 1 and an unknown kind.
    """
    if not (rate > 0 and math.isfinite(rate)):
        raise ValueError(f"the rate is requests per second, above 0, got {rate:g}")
    if burst < 1:
        raise ValueError(f"a burst has 1 request or more, got {burst}")
    if kind == "even":
        return [number / rate for number in range(count)]
    if kind not in ARRIVALS:
        raise ValueError(f"arrivals are {', '.join(ARRIVALS)}, got {kind!r}")
    size = burst if kind == "burst" else 1
    moments = random_arrivals(-(-count // size), rate / size, seed)
    return [moments[number // size] - moments[0] for number in range(count)]


def read_trace(path: Path, seed: int) -> list[LoadRequest]:
    """The requests of a trace, timestamps counted from the first one.

    Raises ValueError, naming the line, for what can't be sent.
    """
    rng = random.Random(seed)
    found: list[LoadRequest] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            found.append(_request(json.loads(line), rng))
            _check_order(found)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}, line {number}: not JSON ({error.msg})") from error
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from error
    if not found:
        raise ValueError(f"{path} holds no request; give one JSON object a line, {FIELDS}")
    return list(_from_zero(found))


def _request(fields: Any, rng: random.Random) -> LoadRequest:
    if not isinstance(fields, dict):
        raise ValueError(f"expected an object with {FIELDS}, got {type(fields).__name__}")
    unknown = sorted(set(fields) - set(FIELDS))
    if unknown:
        raise ValueError(f"there is no field {unknown[0]!r}; known: {', '.join(FIELDS)}")
    if ("prompt" in fields) == ("prompt_tokens" in fields):
        raise ValueError("give either prompt or prompt_tokens")
    text = fields.get("prompt")
    if "prompt" in fields and not (isinstance(text, str) and text):
        raise ValueError(f"prompt must be a text that is not empty, got {text!r}")
    if text is None:
        text = random_text(rng, _whole(fields, "prompt_tokens"))
    timestamp = fields.get("timestamp")
    if "timestamp" in fields and not (
        isinstance(timestamp, int | float)
        and not isinstance(timestamp, bool)
        and math.isfinite(timestamp)
    ):
        raise ValueError(f"timestamp must be a number of seconds, got {timestamp!r}")
    return LoadRequest(text, _whole(fields, "max_tokens"), timestamp)


def _whole(fields: dict[str, Any], name: str) -> int:
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} must be a whole number, 1 or more, got {value!r}")
    return value


def _check_order(found: list[LoadRequest]) -> None:
    last, before = found[-1].timestamp, found[max(len(found) - 2, 0)].timestamp
    if (last is None) != (before is None):
        raise ValueError("either all lines have a timestamp or none; this one differs")
    if last is not None and before is not None and last < before:
        raise ValueError(f"timestamp {last:g} is before the previous line's {before:g}")


def _from_zero(found: list[LoadRequest]) -> Iterable[LoadRequest]:
    start = found[0].timestamp or 0.0
    for one in found:
        moment = None if one.timestamp is None else one.timestamp - start
        yield LoadRequest(one.prompt, one.max_tokens, moment)
