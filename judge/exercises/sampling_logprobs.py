"""Owns the checks, hints and known mistakes of `sampling.logprobs`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from judge import tensor_compare
from judge.api import Case, Check, Details, Mistake
from judge.sampling_checks import TOLD, told_check
from judge.sampling_logprobs import one_call, rounded

CALL = "judge.sampling_calls:logprobs"
SEMANTICS = (2.0, 1.0, 0.0, -1.0)
TENSORS = "the numbers are tensors, not Python's own"


def case(logits: Any, token_ids: Sequence[int], counts: Sequence[int], label: str) -> Case:
    logits = np.array(logits, dtype=np.float32)
    size = f"{len(logits)} row{'s' * (len(logits) != 1)} of {logits.shape[1]} tokens"
    payload = {"logits": logits, "token_ids": list(token_ids), "counts": list(counts)}
    return Case(f"token_logprobs, {size}: {label}", payload)


def rows(rng: random.Random, count: int, size: int, spread: float = 2.0) -> Any:
    """Random logits, no two of a row equal or nearly so."""
    source = np.random.default_rng(rng.getrandbits(32))
    steps = np.arange(size) + source.uniform(0, 0.4, (count, size))
    return source.permuted(steps * spread / size - spread / 2, axis=1).astype(np.float32)


def by_hand(rng: random.Random) -> Sequence[Case]:
    """SEMANTICS 34."""
    return [
        case([SEMANTICS], [3], [2], f"logits {list(SEMANTICS)}, token 3, 2 asked"),
        case([SEMANTICS], [0], [1], f"logits {list(SEMANTICS)}, token 0, 1 asked"),
        case([SEMANTICS], [1], [4], f"logits {list(SEMANTICS)}, token 1, 4 asked"),
    ]


def ranks(rng: random.Random) -> Sequence[Case]:
    """The best, the worst and others."""
    logits = rows(rng, 4, 20)
    order = logits.argsort(axis=1)
    tokens = [int(order[0, -1]), int(order[1, 0]), int(order[2, 10]), int(order[3, -2])]
    equal = [[1.0, 1.0, 0.0, 1.0], [0.0, 2.0, 2.0, 1.0]]
    return [
        case(logits, tokens, [0, 0, 0, 0], "best, worst and middle tokens"),
        case(equal, [1, 3], [0, 0], "equal logits: only larger ones count"),
    ]


def own_counts(rng: random.Random) -> Sequence[Case]:
    """Each row its own number; 0 asks for none, and the chosen token is not added."""
    logits = rows(rng, 5, 30)
    worst = [int(row.argmin()) for row in logits]
    return [
        case(logits, worst, [3, 0, 20, 1, 5], "counts 3, 0, 20, 1 and 5"),
        case(logits[:2], worst[:2], [0, 0], "nothing asked"),
    ]


def small_vocabulary(rng: random.Random) -> Sequence[Case]:
    return [case(rows(rng, 2, 3), [0, 2], [20, 2], "20 and 2 asked of 3 tokens")]


def large_logits(rng: random.Random) -> Sequence[Case]:
    """exp of these is infinite, or zero."""
    return [
        case(rows(rng, 3, 12) + shift, [0, 5, 11], [2, 2, 2], f"logits around {shift:g}")
        for shift in (100.0, -110.0)
    ]


def half_precision(rng: random.Random) -> Sequence[Case]:
    found = []
    for size in (40, 300):
        made = case(np.round(rows(rng, 3, size, 8.0), 1), [3, 7, 39], [0, 0, 0], "bfloat16 logits")
        made.payload["logits"] = tensor_compare.bfloat16(made.payload["logits"])
        found.append(made)
    return found


def random_cases(rng: random.Random) -> Sequence[Case]:
    cases = []
    for _ in range(8):
        count, size = rng.randint(1, 6), rng.choice([5, 64, 700])
        tokens = [rng.randrange(size) for _ in range(count)]
        asked = [rng.randint(0, 20) for _ in range(count)]
        cases.append(case(rows(rng, count, size, 6.0), tokens, asked, "random rows"))
    return cases


def _check(name: str, title: str, cases: Any) -> Check:
    return Check(name, title, CALL, cases, one_call, fingerprint=rounded)


EXERCISE = Details(
    checks=(
        _check("by-hand", "four logits that can be done by hand", by_hand),
        _check("ranks", "ranks", ranks),
        _check("counts", "each row has its own count", own_counts),
        _check("small", "more asked than there are tokens", small_vocabulary),
        _check("large", "logits whose exp is infinite or zero", large_logits),
        _check("bfloat16", "bfloat16 logits, computed in float32", half_precision),
        _check("random", "random rows", random_cases),
        told_check("tiny", TOLD),
        told_check("smollm2", TOLD),
    ),
    hints=(
        "A row has 50,000 logits and you want the log probabilities of three of them. Which single "
        "number of the row, beside these three, do you need? And why must it not be computed as "
        "the logarithm of a sum of exp of logits around 100?",
        "log softmax is the logit minus one number of the row, its log-sum-exp, and torch has that "
        "in a form that never overflows. The order of logits is the order of probabilities, so "
        "ranks and best tokens need no softmax at all. Rows want different counts: look for as "
        "many as the greediest row wants, but no more than there are tokens, and cut each row.",
        "to float32\n"
        "one log-sum-exp per row\n"
        "the chosen tokens' logits, picked by their ids; how many of the row are larger, and 1\n"
        "the best of every row, as many as the largest count, and their ids\n"
        "everything to Python lists at once\n"
        "for each row: its entry, with the first `count` pairs of (id, logit - log-sum-exp)",
    ),
    mistakes=tuple(
        Mistake(name, {"token_logprobs": f"judge.mistakes.sampling_logprobs:{function}"})
        for name, function in (
            ("ranks count from 0", "ranks_from_zero"),
            ("equal logits count in the rank", "ranks_of_equals"),
            ("ranks count from the worst", "ranks_from_the_worst"),
            ("probabilities instead of their logarithms", "probabilities"),
            ("logits instead of log probabilities", "raw_logits"),
            ("logarithms to the base 2", "base_two"),
            ("the chosen token is put in front of top", "chosen_in_front"),
            ("the chosen token is added to top where it is missing", "chosen_added"),
            ("all rows get as many as the first", "first_count"),
            ("all rows get as many as the largest count", "largest_count"),
            ("top starts at the second best", "second_best"),
            ("top starts at the worst", "worst_first"),
            ("the softmax runs over the rows, not over the tokens", "over_rows"),
            ("the softmax is that of the whole batch", "over_all"),
            ("large logits overflow: exp of the logits themselves", "overflows"),
            ("computed in the logits' own dtype, not in float32", "own_dtype"),
            (TENSORS, "tensors"),
        )
    ),
)  # fmt: skip
