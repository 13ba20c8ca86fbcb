"""Owns the checks, hints and known mistakes of `batching.logits-rows`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from judge import compare
from judge.api import Case, Check, Details, Difference, Mistake
from judge.tensor_checks import shadow_check, smollm2_check, tiny_check

CALL = "judge.execute:call_function"
EVERY = "a row of every chunk, also of those that do not reach the last known token"

Chunk = tuple[int, int, int]  # tokens computed before, tokens of the chunk, tokens known


def batch(*chunks: Chunk) -> Case:
    """The call for a batch of these chunks."""
    starts = [0]
    for _, count, _ in chunks:
        starts.append(starts[-1] + count)
    return case(starts, [before + count for before, count, _ in chunks], [k for *_, k in chunks])


def case(starts: list[int], seq_lens: list[int], known: list[int]) -> Case:
    args = [starts, seq_lens, known]
    label = f"logits_rows({starts}, {seq_lens}, {known})"
    return Case(label, {"function": "logits_rows", "args": args})


def decode(rng: random.Random) -> Chunk:
    before = rng.randint(1, 60)
    return before, 1, before + 1


def prompt(rng: random.Random) -> Chunk:
    count = rng.randint(2, 9)
    return 0, count, count


def last(rng: random.Random) -> Chunk:
    """The end of a prompt that began in an earlier step."""
    before, count = rng.randint(1, 40), rng.randint(1, 9)
    return before, count, before + count


def part(rng: random.Random) -> Chunk:
    """A chunk that leaves tokens for later: at the start of a prompt, or in its middle."""
    before, count = rng.choice([0, rng.randint(1, 40)]), rng.randint(1, 9)
    return before, count, before + count + rng.choice([1, rng.randint(2, 50)])


KINDS = (decode, prompt, last, part)


def by_hand(rng: random.Random) -> Sequence[Case]:
    return [batch((5, 1, 6), (0, 4, 9), (0, 3, 3)), batch((0, 1, 1)), batch((0, 2, 2), (7, 1, 8))]


def all_sampled(rng: random.Random) -> Sequence[Case]:
    """Decodes alone, whole prompts alone, and both."""
    return [
        batch(*(decode(rng) for _ in range(rng.randint(2, 6)))),
        batch(*(prompt(rng) for _ in range(rng.randint(2, 4)))),
        batch(decode(rng), prompt(rng), decode(rng), last(rng)),
    ]


def unfinished(rng: random.Random) -> Sequence[Case]:
    """Chunks that leave tokens, at every place of the batch; one leaves a single token."""
    before = rng.randint(1, 20)
    return [
        batch(part(rng), decode(rng), prompt(rng)),
        batch(decode(rng), part(rng), decode(rng)),
        batch(prompt(rng), part(rng)),
        batch((0, 4, 5), (before, 3, before + 4), decode(rng)),
        batch((before, 1, before + 9), (0, 1, 2), prompt(rng)),  # one token, and no decode
        batch((2, 5, 7), (0, 5, 7), (0, 7, 7)),
    ]


def recomputed(rng: random.Random) -> Sequence[Case]:
    """After a preemption, prompt and outputs are computed again, in one chunk or in several."""
    known = rng.randint(20, 40)
    return [
        batch((0, known, known), decode(rng)),
        batch((0, 8, known), decode(rng)),
        batch((8, known - 8, known), part(rng)),
    ]


def nothing(rng: random.Random) -> Sequence[Case]:
    return [batch(), batch(part(rng)), batch(part(rng), part(rng), part(rng))]


def random_cases(rng: random.Random) -> Sequence[Case]:
    return [batch(*(rng.choice(KINDS)(rng) for _ in range(rng.randint(1, 10)))) for _ in range(25)]


def unfit(rng: random.Random) -> Sequence[Case]:
    return [
        case([0, 1], [3, 4], [3, 4]),
        case([0, 1, 2], [3], [3]),
        case([0, 1, 2], [3, 4], [3]),
        case([0, 1], [3], [3, 4]),
        case([], [], []),
    ]


def unknown(rng: random.Random) -> Sequence[Case]:
    """More tokens computed than known."""
    more = rng.randint(1, 5)
    return [case([0, 2], [2], [1]), case([0, 1, 4], [6, 9 + more], [6, 9]), case([0, 1], [1], [0])]


def rows(case: Case, expected: Any, got: Any) -> Difference | None:
    """The first request whose row is wrong, missing or not wanted."""
    found = compare.function_answer(case, expected, got)
    want, have = expected["value"], got.get("value")
    if found is None or not isinstance(want, list) or not isinstance(have, list):
        return found
    starts, seq_lens, known = case.payload["args"]
    ends = [end - 1 for end in starts[1:]]
    for request, row in enumerate(ends):
        there = f"request {request} has the rows {starts[request]} to {row} and {seq_lens[request]}"
        there += f" of {known[request]} known tokens computed"
        if row in want and row not in have:
            line = f"{there}, so row {row} is wanted"
        elif row in have and row not in want:
            line = f"{there}, so none of its rows is wanted"
        else:
            continue
        return Difference((*found.lines, line), found.status, found.frames)
    return found


def _check(name: str, title: str, cases: Any) -> Check:
    return Check(name, title, CALL, cases, rows)


EXERCISE = Details(
    checks=(
        _check("by-hand", "small batches that can be done by hand", by_hand),
        _check("all-sampled", "decodes and whole prompts: one row each", all_sampled),
        _check("unfinished", "a chunk that leaves tokens for later samples nothing", unfinished),
        _check("recomputed", "prompt and outputs computed again", recomputed),
        _check("nothing", "a step that samples nothing has no rows", nothing),
        _check("random", "random batches", random_cases),
        _check("unfit", "lists that do not fit together are a ValueError", unfit),
        _check("unknown", "more computed than known is a ValueError", unknown),
        shadow_check(),
        tiny_check("llama", "qwen3", spare=True),
        smollm2_check(),
    ),
    hints=(
        "A prompt has 9 tokens, and the step computes its first 4. The model gives scores for what "
        "follows each of the 4. Which of these four predictions does anybody need? And which, when "
        "the other 5 are computed?",
        "How long a chunk is tells nothing: what counts is whether a token follows that is known. "
        "Only where none does is the next one sampled, and then the chunk's last row predicts it. "
        "Each list says one thing of a request, except the starts: they also say where the one "
        "before ends.",
        "refuse lists whose lengths do not fit\n"
        "for each request, in order:\n"
        "    more computed than known: refuse\n"
        "    fewer: go on with the next one\n"
        "    the same: note the row just before the start of the next request",
    ),
    mistakes=tuple(
        Mistake(name, {"logits_rows": f"judge.mistakes.batching:{function}"})
        for name, function in (
            (EVERY, "every_chunk"),
            ("the rows are one too high: the first row behind each chunk", "one_too_high"),
            ("the rows are one too low: the row before the last", "one_too_low"),
            ("the first row of each chunk instead of the last", "first_rows"),
            ("positions are given instead of rows of the batch", "positions"),
            ("only chunks of one token are sampled from", "decodes_only"),
            ("chunks of one token are always sampled from", "single_tokens_always"),
            ("every chunk of one token is sampled from, and no other", "single_tokens_only"),
            ("rows are counted by seq_lens, not by the chunk's own tokens", "start_plus_length"),
            ("numbers of requests are given instead of rows of the batch", "requests"),
            ("the known tokens are compared with the chunk alone", "whole_in_one_chunk"),
            ("-1 is given for a request that is not sampled", "minus_one"),
            ("rows of the chunks that are not finished, instead of those that are", "inverted"),
            ("a chunk that leaves one token counts as finished", "one_left"),
            ("every row of a finished chunk is given, not only its last", "all_rows"),
            ("lists that do not fit together go unnoticed", "takes_unfit"),
            ("more computed than known goes unnoticed, and samples", "takes_unknown"),
            ("more computed than known goes unnoticed, and samples nothing", "skips_unknown"),
        )
    ),
)  # fmt: skip
