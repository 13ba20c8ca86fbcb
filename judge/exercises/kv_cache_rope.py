"""Owns the checks, hints and known mistakes of `kv-cache.rope`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from judge import tensor_compare
from judge.api import Case, Check, Details, Difference, Mistake
from judge.tensor_checks import smollm2_check, tiny_check
from judge.wire import Array

CALL = "judge.tensor_calls:call"
NAMES = ("x", "cos", "sin")
PROPERTY = 1e-4  # float32, relative to the size of what is compared
THETA = 10_000.0


def case(label: str, x: Any, cos: Any, sin: Any, **more: Any) -> Case:
    """A call with float32 numbers."""
    args = [np.asarray(value, dtype=np.float32) for value in (x, cos, sin)]
    payload = {"function": "apply_rope", "names": list(NAMES), "args": args, **more}
    shapes = ", ".join(f"{n} {list(a.shape)}" for n, a in zip(NAMES, args, strict=True))
    return Case(f"apply_rope({shapes}), {label}", payload)


def angles(positions: Sequence[int], head_dim: int) -> tuple[Any, Any]:
    """cos and sin as the model makes them."""
    frequencies = THETA ** (-np.arange(0, head_dim, 2) / head_dim)
    turned = np.asarray(positions, dtype=np.float64)[:, None] * frequencies
    return np.cos(turned), np.sin(turned)


def numbers(rng: random.Random, *shape: int) -> Any:
    return np.random.default_rng(rng.getrandbits(32)).standard_normal(shape)


def by_hand(rng: random.Random) -> Sequence[Case]:
    one, two = [[[1.0, 2.0, 3.0, 4.0]]], [[[1.0, 2.0]]]
    return [
        case("x [1, 2], a quarter turn", two, [[0.0]], [[1.0]]),
        case("x [1, 2, 3, 4], a quarter turn", one, [[0.0, 0.0]], [[1.0, 1.0]]),
        case("x [1, 2, 3, 4], only pair 0 turned", one, [[0.0, 1.0]], [[1.0, 0.0]]),
    ]


def position_zero(rng: random.Random) -> Sequence[Case]:
    cases = []
    for heads, head_dim in ((1, 2), (3, 8), (9, 64)):
        cos, sin = angles([0, 0, 0], head_dim)
        cases.append(case("position 0: nothing turns", numbers(rng, 3, heads, head_dim), cos, sin))
    return cases


def random_cases(rng: random.Random) -> Sequence[Case]:
    """Shapes and positions, also those of a chunk in the middle and of a flat batch."""
    cases = []
    for _ in range(12):
        tokens, heads, half = rng.randint(1, 9), rng.randint(1, 6), rng.choice([1, 2, 4, 16, 32])
        start = rng.choice([0, 1, rng.randint(2, 4000)])
        positions = [start + i for i in range(tokens)]
        if rng.random() < 0.4:
            positions = [rng.randrange(5000) for _ in range(tokens)]
        cos, sin = angles(positions, 2 * half)
        label = f"positions {', '.join(map(str, positions))}"
        cases.append(case(label, numbers(rng, tokens, heads, 2 * half), cos, sin))
    # As many tokens as heads or pairs: a wrong broadcast then runs and is wrong.
    for tokens, heads, half in ((4, 4, 4), (4, 2, 4), (3, 3, 8), (1, 4, 8)):
        cos, sin = angles([7 + i for i in range(tokens)], 2 * half)
        label = f"positions from 7 on, {tokens} tokens, {heads} heads"
        cases.append(case(label, numbers(rng, tokens, heads, 2 * half), cos, sin))
    return cases


def lengths(rng: random.Random) -> Sequence[Case]:
    cos, sin = angles([1, 5, 900], 16)
    return [case("positions 1, 5, 900", numbers(rng, 3, 2, 16), cos, sin)]


def distances(rng: random.Random) -> Sequence[Case]:
    """One query and one key at several places, always the same distance apart."""
    distance = rng.randint(1, 40)
    places = [0, 3, rng.randint(4, 900)]
    query, key = numbers(rng, 1, 1, 16), numbers(rng, 1, 1, 16)
    x = np.concatenate([query] * len(places) + [key] * len(places))
    positions = [place + distance for place in places] + places
    cos, sin = angles(positions, 16)
    label = f"one query and one key, {distance} apart, at {len(places)} places"
    return [case(label, x, cos, sin)]


def half_precision(rng: random.Random) -> Sequence[Case]:
    cases = []
    for tokens, heads, head_dim in ((5, 3, 16), (2, 9, 64)):
        cos, sin = angles([rng.randrange(3000) for _ in range(tokens)], head_dim)
        made = case("bfloat16", numbers(rng, tokens, heads, head_dim), cos, sin)
        made.payload["args"] = [tensor_compare.bfloat16(a) for a in made.payload["args"]]
        cases.append(made)
    return cases


def slices(rng: random.Random) -> Sequence[Case]:
    cos, sin = angles([2, 3, 4, 5], 8)
    x = numbers(rng, 4, 3, 8)
    return [
        case("x is a slice of a larger tensor (not contiguous)", x, cos, sin, strided=["x"]),
        case("x lies in memory with the heads first", x, cos, sin, heads_first=["x"]),
    ]


def property_of(measure: Any) -> Any:
    """Compare what the answer itself shows; a wrong form is compared as everywhere."""

    def compare_one(case: Case, expected: Any, got: Any) -> Difference | None:
        value, wanted = got["value"], expected["value"]
        if not isinstance(value, Array) or tensor_compare.form_lines(wanted, value):
            return tensor_compare.against(case, expected, got, tensor_compare.rope_oracle)
        lines = measure(case, value.numpy().astype(np.float64))
        return Difference((case.label, *lines)) if lines else None

    return compare_one


def pair_lengths(case: Case, out: Any) -> list[str]:
    """A turn keeps the length of every pair (i, i + head_dim / 2)."""
    x = tensor_compare.exact(case.payload["args"][0])
    half = x.shape[-1] // 2
    before, after = (np.hypot(a[..., :half], a[..., half:]) for a in (x, out))
    wrong = ~(abs(after - before) <= PROPERTY * (1 + before))
    if not wrong.any():
        return []
    token, head, pair = (int(i) for i in np.argwhere(wrong)[0])
    return [
        f"token {token}, head {head}: numbers {pair} and {pair + half} are a pair of length "
        f"{before[token, head, pair]:.4g}; after the turn it is {after[token, head, pair]:.4g}",
        "a turn keeps lengths: a pair's new numbers must come from that pair alone",
    ]


def same_distance(case: Case, out: Any) -> list[str]:
    """query . key depends on how far apart they stand, not on where."""
    places = out.shape[0] // 2
    products = [float(out[i, 0] @ out[places + i, 0]) for i in range(places)]
    size = float(np.linalg.norm(out[0, 0]) * np.linalg.norm(out[places, 0]))
    if all(abs(p - products[0]) <= PROPERTY * (1 + size) for p in products):
        return []
    shown = ", ".join(f"{product:.4g}" for product in products)
    return [f"query . key must be the same at all places, got {shown}"]


def _check(name: str, title: str, cases: Any, compare: Any = None) -> Check:
    against_oracle = tensor_compare.compare_with(tensor_compare.rope_oracle)
    return Check(name, title, CALL, cases, compare or against_oracle)


EXERCISE = Details(
    checks=(
        _check("by-hand", "quarter turns that can be done by hand", by_hand),
        _check("position-0", "position 0 changes nothing", position_zero),
        _check("random", "random shapes and positions against float64", random_cases),
        _check("lengths", "every pair keeps its length", lengths, property_of(pair_lengths)),
        _check("distance", "query . key depends on the distance alone", distances,
               property_of(same_distance)),
        _check("slices", "x that is not contiguous", slices),
        _check("bfloat16", "bfloat16 in, bfloat16 out", half_precision),
        tiny_check("llama", "qwen3"),
        smollm2_check(),
    ),
    hints=(
        "Which two numbers of a head form one pair here: neighbours, or two that stand half a head "
        "apart? And cos has one row per token, x has several heads per token: along which "
        "dimension must cos be repeated?",
        "Turning keeps a pair's length and never mixes two pairs. Both new numbers of a pair "
        "come from both *old* ones, so overwrite nothing in between. One row of cos and sin "
        "serves all heads of its token.",
        "a is the first half of the last dimension of x, b the second half\n"
        "give cos and sin a dimension of size 1 where x has its heads\n"
        "the new first half: a times cos, less b times sin\n"
        "the new second half: b times cos, plus a times sin\n"
        "put the halves one behind the other in a new tensor",
    ),
    mistakes=tuple(
        Mistake(name, {"apply_rope": f"judge.mistakes.rope:{function}"})
        for name, function in (
            ("neighbours are paired instead of the two halves", "neighbours"),
            ("halves are read, but the result is interleaved", "interleaved_result"),
            ("turned in the wrong direction", "backwards"),
            ("the sign of the second half", "wrong_sign"),
            ("sin and cos are swapped", "swapped"),
            ("the second half is made from the new first half", "sequential"),
            ("the first half is made from the new second half", "sequential_from_second"),
            ("x is overwritten while it is still needed", "overwritten"),
            ("x is overwritten while it is still needed", "overwritten_from_second"),
            ("x is changed in place", "in_place"),
            ("only the first half is turned", "first_half_only"),
            ("the angles of the first token are used for all", "first_angle"),
            ("cos and sin lack a dimension for the heads", "by_heads"),
            ("halves swapped in the result", "halves_swapped"),
            ("the result is float32 whatever x is", "always_float32"),
            ("the result is float32 whatever x is", "float32_at_the_end"),
        )
    ),
)  # fmt: skip
