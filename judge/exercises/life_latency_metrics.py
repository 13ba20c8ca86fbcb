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
    ),
)  # fmt: skip
