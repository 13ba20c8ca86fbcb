"""Owns the checks, hints and known mistakes of `kv-cache.generate`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from judge import compare, tensor_compare
from judge.api import Case, Check, Details, Difference, Mistake
from judge.engine_report import close_tokens
from judge.tensor_checks import TIE, first_difference, pieces
from judge.wire import Array

GENERATE = "judge.tensor_calls:generate"
VOCAB = 512  # of the tiny models
SO_FAR = "computed so far"


def run(rng: random.Random, length: int, max_tokens: int, **more: Any) -> dict[str, Any]:
    """One call: a random prompt for a tiny random model."""
    prompt = [rng.randrange(VOCAB) for _ in range(length)]
    made = {"model": "llama", "seed": 0, "prompt": prompt, "max_tokens": max_tokens, "ends": []}
    return made | more


def case(label: str, *runs: Any) -> Case:
    return Case(label, {"runs": list(runs)})


def tokens(rng: random.Random) -> Sequence[Case]:
    seed = rng.randrange(1000)
    cases = []
    for length, model in ((1, "llama"), (rng.randint(6, 20), "qwen3"), (2, "qwen3")):
        made = run(rng, length, rng.randint(6, 14), model=model, seed=seed)
        cases.append(case(f"a prompt of {length}, a tiny {model} model", made))
    for model, label in (
        ("deep", "a tiny model of 36 layers"),
        ("double", "weights in float64, so the cache, too"),
    ):
        cases.append(case(label, run(rng, 2, 2, model=model)))
    return cases


def single(rng: random.Random) -> Sequence[Case]:
    return [
        case(f"max_tokens {count}, a prompt of {length}", run(rng, length, count))
        for length, count in ((1, 1), (6, 1), (6, 2))
    ]


def ends(rng: random.Random) -> Sequence[Case]:
    """Many end tokens, so that texts end early; which token comes only the model knows."""
    everything = list(range(VOCAB))
    cases = [case("every token is an end token", run(rng, 4, 5, ends=everything))]
    for share in (2, 4, 4, 8, 8):
        chosen = sorted(rng.sample(everything, VOCAB // share))
        made = run(rng, rng.randint(1, 8), 24, ends=chosen, seed=rng.randrange(1000))
        cases.append(case(f"one token of {share} is an end token", made))
    made = run(rng, 6, 8)
    cases.append(case("end tokens in the prompt end nothing", made | {"ends": made["prompt"][1:3]}))
    return cases


def again(rng: random.Random) -> Sequence[Case]:
    """The first case of all, in a fresh process: a call, then others that must not notice it.

    The last one ends with the third token of the call before, its only end token.
    """
    first, longer, other = run(rng, 5, 6), run(rng, 12, 9), run(rng, 5, 6, model="qwen3")
    runs = (first, first, longer, other, first, first | {"ends_like": 2})
    return [case("six calls, the fourth on another model", *runs)]


def work(rng: random.Random) -> Sequence[Case]:
    chosen = sorted(rng.sample(range(VOCAB), VOCAB // 4))
    return [
        case("a prompt of 6, 5 tokens", run(rng, 6, 5)),
        case("a prompt of 1, 4 tokens", run(rng, 1, 4)),
        case("max_tokens 1", run(rng, 3, 1)),
        case("ends early", run(rng, 4, 16, ends=chosen)),
    ]


def smollm2(rng: random.Random) -> Sequence[Case]:
    prompt = [rng.randrange(100, 40_000) for _ in range(12)]
    made = run(rng, 1, 10, model="smollm2", prompt=prompt)
    return [case("SmolLM2, a prompt of 12 random tokens", made)]


def contract(case: Case, answer: Any) -> Any:
    """What the contract judges: tokens, and which token was computed when at which position."""
    normal = []
    for made in answer:
        computed = [
            [token, position]
            for ids, positions in made["passes"]
            for token, position in zip(ids, positions, strict=True)
        ]
        close = [close_tokens(top, TIE) for top in made["tops"]]
        honest = made["rows"] == len(computed) or not _is_tokens(made["tokens"])
        normal.append({"tokens": made["tokens"], "computed": computed, "close": close,
                       "changed": made["changed"],
                       "hidden": None if honest else made["rows"]})  # fmt: skip
    return normal


def same_answers(case: Case, expected: Any, got: Any) -> Difference | None:
    """The reference's tokens in every run, up to a near tie."""
    for number, (made, want) in enumerate(zip(case.payload["runs"], expected, strict=True)):
        have = got[number]
        place = (f"{case.label}: {call_line(case.payload, number)}",)
        if not _is_tokens(have["tokens"]):
            return not_tokens(want["tokens"], have["tokens"], place)
        wrong = first_difference(want["tokens"], have["tokens"], want["close"])
        if wrong is not None:
            return Difference((*place, *token_lines(made, want, have, wrong)))
        if have["hidden"] is not None:
            return Difference((*place, *hidden_work(have)))
        if have["changed"]:
            line = "the tokens are right, but the call changed the list prompt_ids"
            return Difference((*place, line))
    return None


def hidden_work(have: Any) -> tuple[str, ...]:
    """More or fewer tokens were computed than the model was asked for."""
    return (
        f"the model was asked to compute {len(have['computed'])} tokens, but {have['hidden']:g} "
        "were computed",
        "the tokens must come from calls of the `model` that generate_cached is given, and of "
        "nothing inside or beside it",
    )


def not_tokens(want: Any, have: Any, place: tuple[str, ...]) -> Difference:
    """An exception, or something that is no list of ints."""
    if isinstance(have, list) and any(isinstance(item, Array) for item in have):
        lines = ("the list holds tensors, expected ints: int(x) or x.item() makes one of a tensor",)
        return Difference((*place, *lines))
    return compare.error_or_wrong(want, have, place)


def token_lines(made: Any, want: Any, have: Any, wrong: int) -> list[str]:
    """The first wrong output, and what was computed wrongly before it, if anything was."""
    words = pieces(made["model"])
    ours, theirs = want["tokens"], have["tokens"]
    if wrong == len(theirs):
        first = "which is right" if len(theirs) == 1 else f"the {len(theirs)} are right"
        agree = first if theirs else "an empty list"
        lines = [f"number of tokens: expected {len(ours)}, got {len(theirs)} ({agree})"]
    elif wrong == len(ours):
        why = "max_tokens" if len(ours) == made["max_tokens"] else "an end token"
        lines = [f"number of tokens: expected {len(ours)}, it ends with {why}; got {len(theirs)}"]
    else:
        position = len(made["prompt"]) + wrong
        lines = [
            f"output {wrong} (position {position}): expected {words(ours[wrong])}, got "
            f"{words(theirs[wrong])}",
            f"this is no matter of rounding; outputs that agree before it: {wrong}",
        ]
    return lines + [line for line in work_lines(made, have) if line.startswith(SO_FAR)]


def each_once(case: Case, expected: Any, got: Any) -> Difference | None:
    """Each token computed once, in order, at its position; the last one never."""
    for number, made in enumerate(case.payload["runs"]):
        have = got[number]
        place = (f"{case.label}: {call_line(case.payload, number)}",)
        if not _is_tokens(have["tokens"]):
            return not_tokens(expected[number]["tokens"], have["tokens"], place)
        if have["hidden"] is not None:
            return Difference((*place, *hidden_work(have)))
        lines = work_lines(made, have)
        if lines:
            return Difference((*place, *lines))
    return None


def work_lines(made: Any, have: Any) -> list[str]:
    """What is wrong with the tokens that the model was given, and when; empty if nothing is."""
    text = made["prompt"] + have["tokens"]
    computed = have["computed"]
    for number, (token, position) in enumerate(computed):
        if number >= len(text) - 1:
            break
        if position != number:
            done = tensor_compare.span([p for _, p in computed[:number]]) if number else "none"
            return [
                f"{SO_FAR}: positions {done}; then position {position} was computed, "
                f"expected {number}"
            ]
        if token != text[number]:
            return [f"at position {number} the token {token} was computed, expected {text[number]}"]
    if len(computed) >= len(text):
        return [
            f"{len(computed)} tokens were computed, expected {len(text) - 1}: the last token "
            "returned is never computed, since nothing reads its keys and values"
        ]
    if len(computed) < len(text) - 1:
        return [f"{len(computed)} tokens were computed, expected {len(text) - 1}"]
    return []


def few_passes(case: Case, expected: Any, got: Any) -> Difference | None:
    """Policy: the prompt in one pass, then a token a pass, and one row of logits each."""
    for number, want in enumerate(expected):
        have = got[number]
        place = f"{case.label}: {call_line(case.payload, number)}"
        sizes = [[len(ids) for ids, _ in answer["passes"]] for answer in (want, have)]
        if sizes[0] != sizes[1]:
            return Difference((place, f"tokens per pass: expected {sizes[0]}, got {sizes[1]}"))
        if want["logits_rows"] != have["logits_rows"]:
            rows = f"expected {want['logits_rows']}, got {have['logits_rows']}"
            return Difference((place, f"rows given to model.logits in each pass: {rows}"))
    return None


def call_line(payload: Any, number: int) -> str:
    """A call as a learner would write it."""
    made = payload["runs"][number]
    prompt = compare.show(made["prompt"], 60)
    stops = made["ends"]
    shown = (
        "" if not stops else f", {set(stops)}" if len(stops) < 4 else f", {len(stops)} end tokens"
    )
    if "ends_like" in made:
        shown = f", {{output {made['ends_like']} of the call before}}"
    which = "" if len(payload["runs"]) == 1 else f"call {number + 1} of {len(payload['runs'])}, "
    return f"{which}generate_cached(model, {prompt}, {made['max_tokens']}{shown})"


def _is_tokens(value: Any) -> bool:
    return type(value) is list and all(type(token) is int for token in value)


def _check(
    name: str, title: str, cases: Any, compare_with: Any = same_answers, **more: Any
) -> Check:
    return Check(name, title, GENERATE, cases, compare_with, normalize=contract, **more)


EXERCISE = Details(
    checks=(
        _check("calls", "the reference's tokens, in the first call and in later ones", again),
        _check("tokens", "the reference's tokens: other lengths, another model", tokens),
        _check("short", "max_tokens 1 and 2", single),
        _check("ends", "end tokens end it, and are kept", ends),
        _check("work", "each token is computed once, at its position", work, each_once),
        Check("passes", "the prompt in one pass, then one token each", GENERATE, work, few_passes,
              kind="policy"),
        _check("smollm2", "SmolLM2: the reference's tokens", smollm2, needs=("smollm2",), last=True,
               limit_s=60.0),
    ),
    hints=(
        "After the prompt's pass, which keys and values does the next token need, and which of "
        "them exist already? What does the model have to be given then, and at which position?",
        "Before each pass the cache holds exactly the tokens computed so far, so their number is "
        "the next token's position. Every layer has keys and values of its own. A pass first adds "
        "its own keys and values, then attends. What was sampled is computed in the next pass, if "
        "there is one.",
        "keys, values: one empty store per layer, made in each call\n"
        "attend(layer, query, key, value): append both to the layer's store, attend over it\n"
        "to compute: at first the prompt, at positions 0, 1, 2 ...\n"
        "repeat: one pass over what is to compute; count it; argmax of the last row's logits\n"
        "    keep the token; enough tokens or an end token: return\n"
        "    to compute: this one token, at the position that the count says",
    ),
    mistakes=tuple(
        Mistake(name, {"generate_cached": f"judge.mistakes.generate:{function}"})
        for name, function in (
            ("everything is computed again for each token", "recompute"),
            ("the positions start at 0 again in each pass", "positions_restart"),
            ("positions are one too high after the prompt", "positions_one_high"),
            ("the position stays where the prompt ended", "positions_stay"),
            ("the last token is computed too", "computes_last"),
            ("all layers share one cache", "one_cache"),
            ("only the newest keys and values are kept", "keeps_newest"),
            ("only the prompt's keys and values are kept", "keeps_prompt"),
            ("keys and values of the call before are still there", "keeps_between_calls"),
            ("keys and values of the call before are still there", "keeps_on_model"),
            ("the end token is left out of the result", "drops_end"),
            ("end tokens are ignored", "ignores_ends"),
            ("an end token in the prompt ends it", "prompt_ends"),
            ("one token more than max_tokens", "one_more"),
            ("one token less than max_tokens", "one_less"),
            ("the first token never ends it", "first_never_ends"),
            ("the prompt is part of the result", "with_prompt"),
            ("max_tokens counts the prompt", "counts_prompt"),
            ("the next token is read from the first row", "first_row"),
        )
    ),
)  # fmt: skip
