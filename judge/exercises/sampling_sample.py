"""Owns the checks, hints and known mistakes of `sampling.sample`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from judge.api import Case, Check, Details, Mistake
from judge.sampling_checks import engine_check, smollm2_check
from judge.sampling_compare import tokens
from judge.sampling_draws import shares
from judge.sampling_oracle import OFF, clear_pair, clear_row

CALL = "judge.sampling_calls:sample"
NOT_DIVIDED = "the temperature has no effect: the noise is divided by it, too, or nothing is"
ORDER = "greedy and drawn tokens are not in the order of the rows"
Entry = dict[str, Any]


def request(rng: random.Random, outputs: int | None = None, **params: Any) -> Entry:
    """A request with a random seed that has some outputs already."""
    params = {"temperature": 1.0, **params}
    number = rng.randrange(1, 40) if outputs is None else outputs
    return {"seed": rng.randrange(2**40), "outputs": number, "params": params}


def greedy(rng: random.Random) -> Entry:
    return request(rng, temperature=0.0)


def case(
    rng: random.Random, requests: Sequence[Entry], label: str, *,
    size: int = 50, spread: float = 1.5, groups: Sequence[Sequence[int]] | None = None,
    logits: Any = None,
) -> Case:  # fmt: skip
    """Rows of random logits, one per request, in one call or in `groups`."""
    if logits is None:
        logits = [clear_row(rng, size, spread, _numbers(entry)) for entry in requests]
    payload = {
        "logits": np.array(logits, dtype=np.float32),
        "requests": list(requests),
        "groups": [list(range(len(requests)))] if groups is None else [list(g) for g in groups],
    }
    return Case(label, payload)


def _numbers(entry: Entry) -> dict[str, float]:
    found = {**OFF, **{k: v for k, v in entry["params"].items() if k in OFF}}
    return {**found, "temperature": found["temperature"] or 1.0}


def greedy_rows(rng: random.Random) -> Sequence[Case]:
    """The best token; of equal ones the lowest id."""
    ties = np.zeros((2, 9))
    ties[:, 3] = ties[:, 7] = 1.0
    return [
        case(rng, [greedy(rng) for _ in range(4)], "greedy rows"),
        case(rng, [greedy(rng), greedy(rng)], "tokens 3 and 7 are equally good", logits=ties),
        case(rng, [], "no rows", logits=np.zeros((0, 9))),
    ]


DISTRIBUTIONS: tuple[Entry, ...] = (
    {}, {"temperature": 2.0}, {"top_p": 0.8}, {"temperature": 0.5, "min_p": 0.1},
)  # fmt: skip
DRAWS = 2000


def many_draws(rng: random.Random) -> Sequence[Case]:
    """The same row with thousands of seeds, always the same ones: no run fails by chance."""
    cases = []
    for number, params in enumerate(DISTRIBUTIONS):
        payload = {
            "logits": np.array([2.0, 1.0, 0.0, -1.0], dtype=np.float32),
            "params": {"temperature": 1.0, **params},
            "first": number * DRAWS,
            "count": DRAWS,
        }
        cases.append(Case(f"{DRAWS:,} rows of logits 2 1 0 -1, each with another seed", payload))
    return cases


def single_draws(rng: random.Random) -> Sequence[Case]:
    """One row at a time, so that only the row itself can be wrong."""
    kinds: tuple[Entry, ...] = (
        {}, {"temperature": 0.5}, {"temperature": 1.7}, {"top_k": 5}, {"top_p": 0.7},
        {"min_p": 0.1}, {"temperature": 1.4, "top_k": 12, "top_p": 0.9, "min_p": 0.01},
    )  # fmt: skip
    return [
        case(rng, [request(rng, **kind)], "one random request", size=size, spread=spread)
        for kind in kinds
        for size, spread in ((30, 1.0), (400, 0.6))
    ]


def repeated(rng: random.Random) -> Sequence[Case]:
    """The same row again: nothing may have moved on."""
    two = [request(rng), request(rng, top_k=9)]
    return [case(rng, two, "the same calls again", groups=[[0], [0], [1], [0, 1], [1, 0], [0]])]


def outputs_and_choices(rng: random.Random) -> Sequence[Case]:
    """One seed, other output numbers and choices: each has draws of its own."""
    seed = rng.randrange(2**40)
    level = np.zeros((8, 200))
    by_output = [{"seed": seed, "outputs": n, "params": {"temperature": 1.0}} for n in range(8)]
    by_choice: list[Entry] = [{**by_output[2], "choice": number} for number in range(8)]
    return [
        case(rng, by_output, "one seed, outputs 0 to 7, all tokens equally likely", logits=level),
        case(rng, by_choice, "one seed, choices 0 to 7, all tokens equally likely", logits=level),
    ]


def side_by_side(rng: random.Random) -> Sequence[Case]:
    """Greedy and random rows in one call, each with its own numbers."""
    kinds: list[Entry] = [
        {"temperature": 0.0}, {"temperature": 0.7}, {"top_k": 4}, {"temperature": 0.0},
        {"temperature": 1.6, "top_p": 0.8}, {"min_p": 0.2}, {"temperature": 0.0, "top_k": 3},
    ]  # fmt: skip
    made = [request(rng, **kind) for kind in kinds]
    turned = made[::-1]
    return [case(rng, made, "greedy and random rows"), case(rng, turned, "and the other way round")]


def batches(rng: random.Random) -> Sequence[Case]:
    """Each row alone, then in batches of 2, 5 and 8, and in another order."""
    kinds: list[Entry] = [
        {}, {"top_p": 0.9}, {"temperature": 0.0}, {"top_k": 5}, {"temperature": 1.5},
        {"min_p": 0.05, "top_p": 0.95}, {"temperature": 0.0}, {"temperature": 0.4, "top_k": 30},
    ]  # fmt: skip
    made = [request(rng, **kind) for kind in kinds]
    order = rng.sample(range(8), 8)
    groups = [*([row] for row in range(8)), [0, 1], [6, 7], range(5), range(3, 8), range(8), order]
    return [case(rng, made, "rows alone and in batches", groups=groups)]


def any_request(rng: random.Random) -> Entry:
    params: Entry = {"temperature": rng.choice([0.0, 0.5, 1.0, round(rng.random() + 0.2, 2)])}
    if rng.random() < 0.4:
        params["top_k"] = rng.randint(1, 30)
    if rng.random() < 0.4:
        params["top_p"] = round(rng.uniform(0.2, 0.98), 2)
    if rng.random() < 0.3:
        params["min_p"] = round(rng.uniform(0.01, 0.3), 2)
    return request(rng, **params)


def random_cases(rng: random.Random) -> Sequence[Case]:
    cases = []
    for _ in range(6):
        size = rng.choice([20, 300])
        pairs = [
            clear_pair(rng, size, 1.5, any_request, _numbers) for _ in range(rng.randint(1, 9))
        ]
        made, logits = zip(*pairs, strict=True)
        cases.append(case(rng, made, "random requests", logits=logits))
    return cases


def _check(name: str, title: str, cases: Any) -> Check:
    return Check(name, title, CALL, cases, tokens)


EXERCISE = Details(
    checks=(
        _check("greedy", "greedy rows: the best token, of equal ones the first", greedy_rows),
        Check("shares", "many draws follow the filtered distribution",
              "judge.sampling_calls:draws", many_draws, shares, limit_s=20.0),
        _check("draws", "one row: the token that its seed, choice and output number say",
               single_draws),
        _check("again", "the same row again gives the same token", repeated),
        _check("outputs", "other outputs and choices are other draws", outputs_and_choices),
        _check("mixed", "greedy and random rows side by side", side_by_side),
        _check("batches", "the same token alone and in any batch", batches),
        _check("random", "random requests", random_cases),
        engine_check(),
        smollm2_check(),
    ),
    hints=(
        "Two requests are in a batch, the first greedy, the second not. Which rows of the logits "
        "go through the filter, and to which request does the first row of what comes out belong? "
        "How does a token find its way back to its own row of the result?",
        "A draw is: filtered logit of each token + noise of that token in that row, and then the "
        "best. The noise of a row comes from the keys of the row's own request and from the ids "
        "themselves (0 to vocab_size - 1), never from places in a sorted or shortened row. The "
        "filter changes nothing about the noise: what is dropped stays at -inf.",
        "start with the best token of every row, which is right for greedy ones\n"
        "list the rows that are not greedy; none: done\n"
        "from their requests, tensors of temperature, min_p, top_k and top_p, a number per row\n"
        "filter these rows only; keys of these requests only\n"
        "noise for all ids in each of these rows; add; the best again\n"
        "write the results to the rows that were listed; a list of plain ints",
    ),
    mistakes=tuple(
        Mistake(name, {"sample": f"judge.mistakes.sampling_sample:{function}"})
        for name, function in (
            ("the keys are those of other requests: greedy rows count, too", "keys_of_the_batch"),
            ("all rows get the noise of the first", "one_row_of_noise"),
            ("the noise belongs to places in the sorted row, not to token ids", "noise_of_ranks"),
            ("the filters are left out", "unfiltered"),
            ("the noise is added before the filters", "noise_first"),
            (NOT_DIVIDED, "noise_before_temperature"),
            (NOT_DIVIDED, "no_temperature"),
            ("the noise is subtracted", "subtracted"),
            ("the noise is added to probabilities, not to logits", "on_probabilities"),
            ("all rows use the numbers of the first one that is drawn", "first_numbers"),
            ("nothing is drawn: there is no noise", "no_noise"),
            ("greedy rows are drawn, too", "all_drawn"),
            ("one greedy row makes all rows greedy", "greedy_if_any"),
            ("the first request decides whether all are greedy", "greedy_of_first"),
            (ORDER, "greedy_in_front"),
            (ORDER, "drawn_in_front"),
            ("of equal logits a greedy row takes the last", "last_of_equals"),
            ("the result is a tensor, not a list of ints", "as_tensor"),
            ("the list holds tensors, not ints", "as_tensors"),
        )
    ),
)  # fmt: skip
