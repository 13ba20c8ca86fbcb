"""Owns the checks, hints and known mistakes of `life.latency-metrics`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from judge import compare
from judge.api import Case, Check, Details, Mistake

CALL = "judge.execute:call_function"
QUARTILES = (0, 25, 50, 75, 90, 95, 99, 100)


def case(function: str, *args: Any, **kwargs: Any) -> Case:
    shown = [repr(item) for item in args] + [f"{key}={value!r}" for key, value in kwargs.items()]
    payload = {"function": function, "args": list(args), "kwargs": kwargs}
    return Case(f"{function}({', '.join(shown)})", payload)


def read_once(made: Case) -> Case:
    """The same call with an iterator as its first argument."""
    first = repr(made.payload["args"][0])
    label = made.label.replace(first, f"iter({first})", 1)
    return Case(label, {**made.payload, "iterators": [0]})


def ticks(rng: random.Random, count: int, start: float) -> list[float]:
    """Times of tokens: some gaps long, some 0 (two tokens of one step)."""
    times = [start]
    while len(times) < count:
        times.append(times[-1] + rng.choice([0.0, 0.01, 0.25, round(rng.uniform(0, 2), 3)]))
    return times[:count]


def first_token(rng: random.Random) -> Sequence[Case]:
    cases = [case("time_to_first_token", 2.0, [2.0]), case("time_to_first_token", 0.0, [1.5, 1.75])]
    for _ in range(8):
        arrival = round(rng.uniform(0, 50), 3)
        times = ticks(rng, rng.randint(1, 6), arrival + rng.uniform(0, 3))
        cases.append(case("time_to_first_token", arrival, times))
    return cases


def gaps(rng: random.Random) -> Sequence[Case]:
    cases = [case("inter_token_latencies", times) for times in ([], [3.0], [1.0, 1.0, 1.5])]
    for _ in range(6):
        times = ticks(rng, rng.randint(2, 9), rng.uniform(0, 9))
        cases.append(case("inter_token_latencies", times))
    return cases


def mean_gap(rng: random.Random) -> Sequence[Case]:
    fixed: list[list[float]] = [[], [3.0], [1.0, 2.0], [1.0, 1.0, 4.0], [5.0, 5.0]]
    cases = [case("time_per_output_token", times) for times in fixed]
    for _ in range(6):
        times = ticks(rng, rng.randint(2, 9), rng.uniform(0, 9))
        cases.append(case("time_per_output_token", times))
    return cases


def percentiles(rng: random.Random) -> Sequence[Case]:
    fixed: list[list[float]] = [[7.0], [1.0, 2.0], [4.0, 1.0, 3.0, 2.0], [2.0, 2.0, 2.0]]
    cases = [case("percentile", values, q) for values in fixed for q in (0, 50, 95, 100)]
    for _ in range(8):
        values = [round(rng.uniform(-1, 30), 3) for _ in range(rng.randint(2, 25))]
        cases.append(case("percentile", values, rng.choice([*QUARTILES, rng.uniform(0, 100)])))
    cases += [case("percentile", [0.0, 100.0], q) for q in (0.5, 12.5, 99.9)]
    return [*cases, read_once(case("percentile", [4.0, 1.0, 3.0], 50))]


def good_requests(rng: random.Random) -> Sequence[Case]:
    """On the limit, one token, no token, only one of the two limits kept, and random ones."""
    served: list[Any] = [
        (0.0, [1.0, 1.5, 2.0]),  # TTFT 1, TPOT .5: exactly on both limits
        (1.0, [1.5]),
        (2.0, []),
        (3.0, [3.25, 5.25]),
        (4.0, [6.5, 6.75]),
        (5.0, [5.25, 5.5, 5.75, 6.7515]),  # TPOT .5005, just above; the median gap is .25
        (6.0, [6.5, 7.25, 7.375]),  # one gap above the limit, their mean below
        (7.0, [8.001, 8.25]),  # TTFT just above
        (8.0, [8.5, 8.75, 9.0, 11.0]),  # only the median gap is within the limit
        (9.0, [9.5, 10.1, 10.7]),  # only the span over the number of tokens is
    ]
    limits: dict[str, Any] = {"max_ttft": 1.0, "max_tpot": 0.5}
    cases = [case("goodput", [], 10.0, **limits)]
    cases += [case("goodput", [request], 2.0, **limits) for request in served]
    cases.append(case("goodput", served, 4.0, **limits))
    for _ in range(4):
        requests = []
        for _ in range(rng.randint(4, 15)):
            arrival = rng.uniform(0, 20)
            requests.append((arrival, ticks(rng, rng.randint(1, 6), arrival + rng.uniform(0, 2))))
        limits = {"max_ttft": rng.uniform(0.5, 1.5), "max_tpot": rng.uniform(0.1, 0.9)}
        cases.append(case("goodput", requests, rng.uniform(5, 30), **limits))
    return [*cases, read_once(case("goodput", served, 4.0, max_ttft=1.0, max_tpot=0.5))]


def refused(rng: random.Random) -> Sequence[Case]:
    back = [1.0, 3.0, 2.0]
    return [
        case("time_to_first_token", 1.0, []),
        case("time_to_first_token", 1.0, back),
        case("time_to_first_token", 2.0, [1.5, 2.5]),
        case("inter_token_latencies", back),
        case("time_per_output_token", back),
        case("percentile", [], 50),
        read_once(case("percentile", [], 50)),
        case("percentile", [1.0, 2.0], -1),
        case("percentile", [1.0, 2.0], 100.5),
        case("goodput", [], 0.0, max_ttft=1.0, max_tpot=1.0),
        case("goodput", [(0.0, [1.0])], -2.0, max_ttft=1.0, max_tpot=1.0),
    ]


def _check(name: str, title: str, cases: Any) -> Check:
    return Check(name, title, CALL, cases, compare.function_answer)


def _mistake(name: str, symbol: str, function: str) -> Mistake:
    return Mistake(name, {symbol: f"judge.mistakes.latency:{function}"})


EXERCISE = Details(
    checks=(
        _check("ttft", "TTFT counts from the arrival", first_token),
        _check("itl", "ITL: one gap less than tokens", gaps),
        _check("tpot", "TPOT: the mean gap, None without a gap", mean_gap),
        _check("percentile", "percentiles on the straight line between two values", percentiles),
        _check("goodput", "good requests per second, limits included", good_requests),
        _check("refuses", "times and numbers that make no sense are a ValueError", refused),
    ),
    hints=(
        "Five tokens came at five moments. How many waits lie between them? Which wait is left "
        "over, and which of the numbers does it belong to?",
        "TTFT is the one wait before the first token, from the arrival and not from the start of "
        "the computation; n tokens have n - 1 gaps, TPOT is their mean. A percentile stands at "
        "position q / 100 * (n - 1) of the sorted values, which need not be a whole number. A "
        "limit is kept by what is equal to it.",
        "order of times: compare each with the one before; smaller: ValueError\n"
        "tpot: fewer than two times: None; else the whole span over the number of gaps\n"
        "percentile: sort a copy; split the position into a whole part and a fraction; go that\n"
        "    fraction of the way from the value there to the next one (if there is a next one)\n"
        "goodput: skip requests without tokens; count those within both limits (no TPOT is\n"
        "    within); divide by the duration",
    ),
    mistakes=(
        _mistake("time in the queue left out of TTFT", "time_to_first_token", "ttft_without_queue"),
        _mistake("TTFT of the last token", "time_to_first_token", "ttft_of_last"),
        _mistake("the wait for the first token counted as a gap", "inter_token_latencies",
                 "itl_from_zero"),
        _mistake("the last gap is missing", "inter_token_latencies", "itl_without_last"),
        _mistake("TPOT divides by tokens, not by gaps", "time_per_output_token", "tpot_by_tokens"),
        _mistake("TPOT of one token is 0, not None", "time_per_output_token", "tpot_zero"),
        _mistake("TPOT is the median gap", "time_per_output_token", "tpot_median"),
        _mistake("nearest value instead of the line between two", "percentile",
                 "percentile_nearest"),
        _mistake("rounded down to the value below", "percentile", "percentile_below"),
        _mistake("position q / 100 * n instead of n - 1", "percentile", "percentile_by_n"),
        _mistake("values not sorted", "percentile", "percentile_unsorted"),
        _mistake("the caller's values are sorted in place", "percentile", "percentile_in_place"),
        _mistake("a limit that is met exactly counts as missed", "goodput", "goodput_strict"),
        _mistake("one token counts as not good", "goodput", "goodput_needs_two"),
        _mistake("one of the two limits is enough", "goodput", "goodput_either"),
        _mistake("only TTFT is looked at", "goodput", "goodput_ttft_only"),
        _mistake("a share of the requests instead of requests per second", "goodput",
                 "goodput_share"),
        _mistake("a request without tokens counts as good", "goodput", "goodput_empty"),
        _mistake("TPOT inside goodput divides by tokens, not by gaps", "goodput",
                 "goodput_tpot_by_tokens"),
        _mistake("every gap is held against max_tpot, not their mean", "goodput",
                 "goodput_every_gap"),
        _mistake("the median gap is held against max_tpot, not the mean", "goodput",
                 "goodput_median_gap"),
        _mistake("times are rounded before they are held against the limits", "goodput",
                 "goodput_rounded"),
    ),
    hints_for={
        "ttft": (
            "A request waits in a queue before anything is computed for it. Does its user wait, "
            "too? From which moment on would they count?",
            "TTFT is one wait: from the arrival to the first token, with the time in the queue in "
            "it. Later tokens do not matter, but all times are looked at before: they must not "
            "decrease, and none comes before the arrival.",
            "no tokens: ValueError\n"
            "compare each time with the one before, and the first with the arrival; smaller: "
            "ValueError\n"
            "the first time, less the arrival",
        ),
        "itl": (
            "Five tokens came at five moments. How many waits lie between them?",
            "Every token but the first has one gap before it, so n tokens have n - 1 gaps. The "
            "wait for the first token is TTFT and no gap. No token and one token have none.",
            "compare each time with the one before; smaller: ValueError\n"
            "for every pair of neighbouring times: the later less the earlier, in a list",
        ),
        "tpot": (
            "The gaps of a request add up to one span. From which token to which does it reach, "
            "and by how many gaps has it to be divided?",
            "TPOT is the mean of the gaps: the first token is no part of it, so n tokens count "
            "n - 1 times. Where there is no gap there is no mean: None, which is not 0.",
            "fewer than two times: None\n"
            "else the last time less the first, over the number of gaps",
        ),
        "percentile": (
            "Four values, sorted, stand at positions 0 to 3. At which position does the 50th "
            "percentile stand, and what lies there?",
            "The percentile stands at position q / 100 * (n - 1) of the sorted values, which need "
            "not be a whole number: between two values it lies on the straight line. The values "
            "may come from an iterator, which can be read once, and stay as they were.",
            "keep the values in a list of your own, sorted; none: ValueError; q outside: "
            "ValueError\n"
            "split the position into a whole part and a fraction\n"
            "go that fraction of the way from the value there to the next one (if there is one)",
        ),
        "goodput": (
            "When is one request good? What of one whose TPOT is exactly the limit, of one with a "
            "single token, of one that got none? And what becomes of the number when the "
            "measurement lasts twice as long?",
            "A request is good if both limits hold, and what equals a limit keeps it. TTFT and "
            "TPOT are those of your other functions, unrounded. One token has no TPOT that could "
            "be too long; no token is not good. Goodput is a rate: requests per second.",
            "duration of 0 or below: ValueError\n"
            "for each request: skip it without tokens; TTFT within its limit, and TPOT None or "
            "within its own: count one\n"
            "the count over the duration",
        ),
        "refuses": (
            "Which of your five functions gets these numbers, and what would it compute from them? "
            "Who would notice that the result means nothing?",
            "Every function looks at its arguments first: times must not decrease (each against "
            "the one before, not only first and last), a first token never comes before the "
            "arrival, a percentile needs values and a q of 0 to 100, a duration is above 0.",
            "one helper for the order of times, called by the three functions that take times\n"
            "no tokens (for TTFT), no values, q or duration out of range: ValueError",
        ),
    },
)  # fmt: skip
