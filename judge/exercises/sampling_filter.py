"""Owns the checks, hints and known mistakes of `sampling.filter`."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from judge.api import Case, Check, Details, Mistake
from judge.sampling_checks import engine_check, smollm2_check
from judge.sampling_compare import by_row, filtered, ties_together, worded
from judge.sampling_oracle import OFF, clear_pair, clear_row

CALL = "judge.tensor_calls:call"
NAMES = ("logits", "temperature", "min_p", "top_k", "top_p")
DTYPES = {"top_k": np.int64}
Numbers = Mapping[str, float]
CROSSING = "top-p drops the token that crosses it"
ROUNDED = "top_p 1 drops tokens: a rounded sum reaches 1 before the end"
FINITE = "dropped tokens get a number instead of -inf"
SEMANTICS = (2.0, 1.0, 0.0, -1.0)


def case(logits: Sequence[Any], rows: Sequence[Numbers], label: str = "") -> Case:
    """One call; `rows` are the numbers of each row, what is left out is off."""
    columns = [
        np.array([{**OFF, **row}[name] for row in rows], dtype=DTYPES.get(name, np.float32))
        for name in NAMES[1:]
    ]
    args = [np.array(logits, dtype=np.float32), *columns]
    size = f"{len(rows)} row{'s' * (len(rows) != 1)} of {args[0].shape[1]} tokens"
    what = label or worded({**OFF, **rows[0]})
    payload = {"function": "filter_logits", "args": args, "names": list(NAMES)}
    return Case(f"filter_logits, {size}: {what}", payload)


def drawn(
    rng: random.Random, rows: Sequence[Numbers], size: int, label: str, spread: float
) -> Case:
    logits = [clear_row(rng, size, spread, {**OFF, **row}) for row in rows]
    return case(logits, rows, label)


def by_hand(rng: random.Random) -> Sequence[Case]:
    """SEMANTICS 32, and the order of tokens turned round."""
    rows: list[Numbers] = [
        {}, {"top_p": 0.8}, {"top_p": 0.6}, {"top_k": 2}, {"top_k": 2, "top_p": 0.7},
        {"min_p": 0.3}, {"temperature": 2.0},
    ]  # fmt: skip
    cases = [case([SEMANTICS], [row], f"logits {list(SEMANTICS)}, {worded(row)}") for row in rows]
    turned = [-1.0, 2.0, 0.0, 1.0]
    return cases + [case([turned], [r], f"logits {turned}, {worded(r)}") for r in rows[1:6:2]]


def temperatures(rng: random.Random) -> Sequence[Case]:
    some = [0.3, 0.7, 1.0, 1.6, rng.uniform(0.4, 3.0)]
    return [
        drawn(rng, [{"temperature": t} for t in some], 12, "temperatures alone", 2.0),
        drawn(
            rng, [{"temperature": t, "top_p": 0.7} for t in (0.5, 2.0)], 12,
            "top_p .7 at temperatures .5 and 2", 2.0,
        ),
        drawn(
            rng, [{"temperature": t, "min_p": 0.2} for t in (0.5, 2.0)], 12,
            "min_p .2 at temperatures .5 and 2", 2.0,
        ),
    ]  # fmt: skip


def each_alone(name: str, *values: float) -> Any:
    """Cases of one number, in rows of one call."""

    def cases(rng: random.Random) -> Sequence[Case]:
        rows = [{name: value} for value in values]
        shown = ", ".join(f"{value:g}" for value in values)
        return [drawn(rng, rows, size, f"{name} {shown}", 1.5) for size in (9, 60)]

    return cases


def crossing(rng: random.Random) -> Sequence[Case]:
    """The token that crosses top_p is kept, also where it is the first."""
    logits = np.log(np.array([0.1, 0.2, 0.3, 0.4]))
    rows: list[Numbers] = [{"top_p": p} for p in (0.05, 0.39, 0.41, 0.6, 0.69, 0.71, 0.95)]
    return [case([logits] * 7, rows, "probabilities .1 .2 .3 .4, top_p .05 to .95")]


def together(rng: random.Random) -> Sequence[Case]:
    """top-p counts shares of what the other two left."""
    rows: list[Numbers] = [
        {"top_k": 4, "top_p": 0.8}, {"min_p": 0.25, "top_p": 0.7}, {"top_k": 6, "min_p": 0.05},
        {"temperature": 0.6, "min_p": 0.02, "top_k": 9, "top_p": 0.9},
    ]  # fmt: skip
    return [drawn(rng, rows, size, "several filters", 1.2) for size in (10, 40)]


def switched_off(rng: random.Random) -> Sequence[Case]:
    """Nothing is dropped. Rounded sums of many small probabilities reach 1 before the end."""
    rows: list[Numbers] = [{}, {"top_k": -1}, {"top_k": 0}, {"top_k": 3000}, {"top_k": 9999}]
    few: list[Numbers] = [{}, {"top_k": -1}, {"top_k": 7}, {"top_k": 50}]
    return [
        drawn(rng, few, 7, "filters that are off", 1.0),
        drawn(rng, rows, 3000, "filters that are off, 3,000 tokens", 6.0),
    ]


def one_survives(rng: random.Random) -> Sequence[Case]:
    rows: list[Numbers] = [
        {"top_p": 1e-6},
        {"min_p": 1.0},
        {"top_k": 1},
        {"top_k": 1, "top_p": 0.1},
    ]
    logits = [np.array(rng.sample(range(40), 8)) / 8.0 for _ in rows]
    return [case(logits, rows, "filters that leave the best token only")]


def forbidden(rng: random.Random) -> Sequence[Case]:
    """Tokens whose logit is -inf already."""
    rows: list[Numbers] = [{}, {"top_k": 4}, {"top_p": 0.9}, {"min_p": 0.05, "temperature": 0.5}]
    made = [clear_row(rng, 12, 1.0, {**OFF, **row}) for row in rows]
    for row in made:
        row[row.argsort()[:3]] = -np.inf
    level = [case([[0.0, -np.inf, -np.inf]], [{}], "logits 0, -inf, -inf")]
    return [*level, case(made, rows, "the three worst tokens are -inf already")]


def tiny_temperatures(rng: random.Random) -> Sequence[Case]:
    logits = np.array([60.0, 59.0, -60.0, 12.0])
    rows: list[Numbers] = [{"temperature": 1e-3}, {"temperature": 1e-37, "top_p": 0.9}]
    return [case([logits, logits[::-1]], rows, "temperatures 1e-3 and 1e-37")]


def any_row(rng: random.Random) -> Numbers:
    row: dict[str, float] = {}
    if rng.random() < 0.7:
        row["temperature"] = round(rng.uniform(0.3, 2.0), 2)
    if rng.random() < 0.5:
        row["top_k"] = rng.randint(1, 25)
    if rng.random() < 0.5:
        row["top_p"] = round(rng.uniform(0.1, 0.98), 2)
    if rng.random() < 0.4:
        row["min_p"] = round(rng.uniform(0.005, 0.5), 3)
    return row


def _numbers(row: Numbers) -> dict[str, float]:
    return {**OFF, **row}


def random_cases(rng: random.Random) -> Sequence[Case]:
    """Rows of one batch that have nothing to do with each other."""
    cases = []
    for _ in range(8):
        size, spread = rng.choice([5, 30, 200]), rng.choice([0.7, 2.0])
        pairs = [clear_pair(rng, size, spread, any_row, _numbers) for _ in range(rng.randint(1, 6))]
        rows, logits = zip(*pairs, strict=True)
        cases.append(case(logits, rows, "random numbers"))
    return cases


def equal_logits(rng: random.Random) -> Sequence[Case]:
    logits = [[1.0, 3.0, 3.0, 3.0, 0.0]] * 2
    return [case(logits, [{"top_k": 2}, {"top_p": 0.1}], "logits 1 3 3 3 0, top_k 2 and top_p .1")]


def _check(name: str, title: str, cases: Any, **more: Any) -> Check:
    return Check(name, title, CALL, cases, filtered, normalize=by_row, **more)


EXERCISE = Details(
    checks=(
        _check("by-hand", "four logits that can be done by hand", by_hand),
        _check("temperature", "probabilities are those after the temperature", temperatures),
        _check("min-p", "min-p: a share of the best", each_alone("min_p", 0.02, 0.1, 0.4)),
        _check("top-k", "top-k: the best few", each_alone("top_k", 1, 2, 5, 8)),
        _check("top-p", "top-p: the fewest that reach the sum", each_alone("top_p", 0.2, 0.5, 0.9)),
        _check("crossing", "the token that crosses top_p is kept", crossing),
        _check("together", "top-p counts shares of what the others left", together),
        _check("off", "filters that are off drop nothing", switched_off),
        _check("one-survives", "the best token always survives", one_survives),
        _check("forbidden", "logits of -inf stay -inf, and nothing becomes NaN", forbidden),
        _check("tiny", "the smallest temperatures do not overflow", tiny_temperatures),
        _check("random", "random rows, each with its own numbers", random_cases),
        Check("ties", "equal logits are kept or dropped together", CALL, equal_logits,
              ties_together, normalize=by_row, kind="policy"),
        engine_check(),
        smollm2_check(),
    ),
    hints=(
        "Four tokens have the probabilities .5, .3, .15 and .05. Which does top_p .7 keep, and "
        "which .85? Now top_k 2 comes first: what do the two that are left have to sum to before "
        "one of them may go? How does sorting each row by probability help with all of it?",
        "Sorted from best to worst, each filter keeps a beginning of the row, so together they do, "
        "too. For top-p, look at what all better tokens have together, without the token "
        "itself, as a share of what min-p and top-k left: the token is needed while that has not "
        "reached top_p. Where a number is off, test for it; a rounded sum is no test.",
        "subtract each row's best logit, then divide by the row's temperature\n"
        "sort each row from best to worst, and take the softmax of the sorted row\n"
        "a mask of the sorted row: at least min_p times the first, and among the first top_k if "
        "that is on\n"
        "set the probabilities outside the mask to 0; sum up from the left\n"
        "sum without the token itself < top_p * sum of the whole row: it stays (always if top_p "
        "is 1)\n"
        "bring the mask back to the order of the ids, or find the worst logit that stays\n"
        "a new tensor: -inf where the token does not stay",
    ),
    mistakes=tuple(
        Mistake(name, {"filter_logits": f"judge.mistakes.sampling_filter:{function}"})
        for name, function in (
            (CROSSING, "crossing_dropped"),
            (CROSSING, "crossing_dropped_all"),
            ("top-p counts shares of all tokens, not of what the others left", "shares_of_all"),
            ("top-p sums up from the worst token", "from_the_worst"),
            ("min-p is left out", "without_min_p"),
            ("top-k is left out", "without_top_k"),
            ("top-p is left out", "without_top_p"),
            ("nothing is filtered", "unfiltered"),
            ("min-p is compared with the probability itself, not with a share of the best",
             "absolute_min_p"),
            ("min-p 1 drops the best token itself", "strict_min_p"),
            ("top-k keeps one token too many", "one_too_many"),
            ("top-k keeps one token too few", "one_too_few"),
            ("top_k 0 is not taken as off", "zero_is_not_off"),
            ("top_k 0 is not taken as off", "zero_keeps_nothing"),
            ("top_k -1 is not taken as off", "minus_one_is_not_off"),
            ("top_k -1 is not taken as off", "minus_one_keeps_nothing"),
            (ROUNDED, "rounded_at_one"),
            (ROUNDED, "rounded_to_one"),
            ("the filters look at the logits before the temperature", "temperature_last"),
            ("the temperature is left out", "no_temperature"),
            ("the logits are multiplied by the temperature, not divided", "times_temperature"),
            ("what is left are logits before the temperature", "divides_only_to_filter"),
            ("all rows use the numbers of the first row", "first_row_for_all"),
            ("the result stands in sorted order, not in that of the ids", "in_sorted_order"),
            ("the mask is in sorted order, the logits are not", "mask_not_brought_back"),
            (FINITE, "zero_instead"),
            (FINITE, "small_instead"),
            (FINITE, "large_instead"),
            (FINITE, "larger_instead"),
            ("the result holds probabilities, not logits", "probabilities"),
            ("small temperatures overflow: the best is not subtracted first", "overflows"),
        )
    ),
)  # fmt: skip
