"""Owns the checks, hints and known mistakes of `sampling.penalties`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from judge.api import Case, Check, Details, Mistake
from judge.sampling_checks import PENALIZED, engine_check, smollm2_check
from judge.sampling_penalties import finite, penalized

CALL = "judge.tensor_calls:call"
NAMES = ["logits", "prompts", "outputs", "repetition", "frequency", "presence"]
SEMANTICS = (2.0, 1.0, 0.0, -1.0)
Row = dict[str, Any]  # logits, prompt, output; repetition, frequency, presence if not off
OFF = {"repetition": 1.0, "frequency": 0.0, "presence": 0.0}
ONLY_OUTPUT = "repetition looks at the output only, not at the prompt"
ORDER = "repetition comes after the other two, not before"


def case(rows: Sequence[Row], label: str) -> Case:
    logits = np.array([row["logits"] for row in rows], dtype=np.float32)
    args = [
        logits,
        [list(row["prompt"]) for row in rows],
        [list(row["output"]) for row in rows],
        *(np.array([row.get(n, OFF[n]) for row in rows], dtype=np.float32) for n in NAMES[3:]),
    ]
    size = f"{len(rows)} row{'s' * (len(rows) != 1)} of {logits.shape[1]} tokens"
    payload = {"function": "apply_penalties", "args": args, "names": NAMES}
    return Case(f"apply_penalties, {size}: {label}", payload)


def row(rng: random.Random, size: int = 10, **more: Any) -> Row:
    """Random logits of both signs; some tokens occur in the prompt, some in the output."""
    source = np.random.default_rng(rng.getrandbits(32))
    logits = np.round(source.standard_normal(size) * 2, 3)
    prompt = [rng.randrange(size) for _ in range(rng.randint(1, 6))]
    output = [rng.randrange(size) for _ in range(rng.randint(1, 8))]
    return {"logits": logits, "prompt": prompt, "output": output + output[:1], **more}


def by_hand(rng: random.Random) -> Sequence[Case]:
    """SEMANTICS 33."""
    kinds: tuple[dict[str, float], ...] = (
        {}, {"presence": 0.5}, {"frequency": 0.5}, {"presence": 0.5, "frequency": 0.5},
        {"repetition": 2.0},
    )  # fmt: skip
    same = {"logits": SEMANTICS, "prompt": [3], "output": [0, 0, 0]}
    return [
        case(
            [{**same, **kind}], f"logits {list(SEMANTICS)}, prompt [3], output [0, 0, 0], "
            f"{', '.join(f'{n} {v:g}' for n, v in kind.items()) or 'no penalty'}",
        )
        for kind in kinds
    ]  # fmt: skip


def presence(rng: random.Random) -> Sequence[Case]:
    return [case([row(rng, presence=p) for _ in range(3)], f"presence {p:g}") for p in (0.7, 1.5)]


def frequency(rng: random.Random) -> Sequence[Case]:
    return [case([row(rng, frequency=f) for _ in range(3)], f"frequency {f:g}") for f in (0.3, 1.2)]


def repetition(rng: random.Random) -> Sequence[Case]:
    """Logits of both signs and zero, tokens that occur often."""
    level = {"logits": [3.0, -3.0, 0.0, 1.0, -1.0], "prompt": [0, 0, 1], "output": [1, 2, 0]}
    return [
        case([{**level, "repetition": 1.5}], "repetition 1.5 on logits of both signs and zero"),
        case([row(rng, repetition=r) for r in (1.1, 1.3, 2.0)], "repetition 1.1, 1.3 and 2"),
    ]


def all_three(rng: random.Random) -> Sequence[Case]:
    rows = [row(rng, repetition=1.4, frequency=0.4, presence=0.6) for _ in range(4)]
    crossing = {"logits": [0.5, -0.5, 1.0], "prompt": [1], "output": [0, 1]}
    three = {"repetition": 2.0, "frequency": 0.3, "presence": 0.4}
    return [
        case([{**crossing, **three}], "logits that cross zero on the way"),
        case(rows, "all three penalties"),
    ]


def own_numbers(rng: random.Random) -> Sequence[Case]:
    """Rows that ask for different things, or for nothing; lists of different lengths."""
    rows = [
        row(rng, presence=1.0), row(rng), row(rng, repetition=1.7), row(rng, frequency=0.9),
        {**row(rng, presence=1.0, frequency=1.0), "output": []},
        {**row(rng, repetition=1.5), "prompt": [], "output": [9]},
        {**row(rng, repetition=1.5, presence=0.2), "prompt": [0] * 30, "output": [9] * 12},
    ]  # fmt: skip
    return [case(rows, "each row its own penalties"), case(rows[::-1], "the other way round")]


def promoting(rng: random.Random) -> Sequence[Case]:
    """Negative penalties, and repetition below 1, make tokens likelier."""
    rows = [row(rng, presence=-1.0), row(rng, frequency=-0.5), row(rng, repetition=0.5)]
    return [case(rows, "penalties that make tokens likelier")]


def forbidden(rng: random.Random) -> Sequence[Case]:
    rows = [row(rng, repetition=1.5), row(rng, frequency=0.5, presence=0.5), row(rng)]
    for one in rows:
        one["logits"][[1, 4, 8]] = -np.inf
        one["output"] = [*one["output"], 4]
    return [case(rows, "the tokens 1, 4 and 8 are -inf already")]


def nothing_yet(rng: random.Random) -> Sequence[Case]:
    rows = [{**row(rng, repetition=1.5, frequency=1.0, presence=1.0), "prompt": p, "output": []}
            for p in ([], [2])]  # fmt: skip
    return [case(rows, "no output yet, and no prompt either in row 0")]


def random_cases(rng: random.Random) -> Sequence[Case]:
    cases = []
    for _ in range(8):
        size, rows = rng.choice([6, 40, 300]), []
        for _ in range(rng.randint(1, 6)):
            more = {n: round(rng.uniform(-2, 2), 2) for n in NAMES[4:] if rng.random() < 0.6}
            if rng.random() < 0.6:
                more["repetition"] = round(rng.uniform(0.6, 2.0), 2)
            rows.append(row(rng, size, **more))
        cases.append(case(rows, "random penalties"))
    return cases


def _check(name: str, title: str, cases: Any) -> Check:
    return Check(name, title, CALL, cases, penalized, normalize=finite)


EXERCISE = Details(
    checks=(
        _check("by-hand", "four logits that can be done by hand", by_hand),
        _check("presence", "presence: once per token of the output", presence),
        _check("frequency", "frequency: as often as it stands in the output", frequency),
        _check("repetition", "repetition: prompt and output, by the sign of the logit", repetition),
        _check("all-three", "all three, in their order", all_three),
        _check("rows", "each row has its own tokens and penalties", own_numbers),
        _check("promoting", "penalties may make tokens likelier", promoting),
        _check("forbidden", "logits of -inf stay -inf", forbidden),
        _check("nothing-yet", "nothing generated yet", nothing_yet),
        _check("random", "random penalties", random_cases),
        engine_check(PENALIZED),
        smollm2_check(PENALIZED),
    ),
    hints=(
        "A logit of -2 belongs to a token that was used. Divide it by 1.5: is the token less "
        "likely now? And which of the three penalties cares whether a token was used once or five "
        "times?",
        "Two tables of counts say all that is needed, a row per request and a column per token: "
        "how often in the prompt, how often in the output. Repetition asks whether either of them "
        "is above zero, frequency takes the second as it is, presence asks whether it is above "
        "zero. The sign is that of the logit before anything was subtracted.",
        "count each row's prompt tokens, and each row's output tokens, with as many columns as the "
        "vocabulary has\n"
        "seen: either count is above 0\n"
        "where seen: the logit over repetition if it is positive, times repetition if not\n"
        "minus frequency times the count in the output\n"
        "minus presence where that count is above 0",
    ),
    mistakes=tuple(
        Mistake(name, {"apply_penalties": f"judge.mistakes.sampling_penalties:{function}"})
        for name, function in (
            ("presence counts the prompt, too", "presence_of_prompt"),
            ("frequency counts the prompt, too", "frequency_of_prompt"),
            ("presence and frequency count the prompt, too", "both_of_prompt"),
            (ONLY_OUTPUT, "repetition_of_output"),
            ("repetition looks at the prompt only, not at the output", "repetition_of_prompt"),
            ("repetition divides negative logits, too: they become likelier", "always_divided"),
            ("repetition multiplies, whatever the sign", "always_multiplied"),
            ("repetition is applied once per occurrence", "repetition_by_count"),
            ("presence is multiplied by the count", "presence_by_count"),
            ("frequency is subtracted once, whatever the count", "frequency_once"),
            (ORDER, "repetition_last"),
            ("presence and frequency are added, not subtracted", "added"),
            ("all rows use the penalties of the first row", "first_penalties"),
            ("the tokens of one row count for all rows", "tokens_of_all"),
            ("nothing is penalized", "nothing"),
            ("the penalties are those of tokens that were not used", "inverted"),
        )
    ),
)  # fmt: skip
