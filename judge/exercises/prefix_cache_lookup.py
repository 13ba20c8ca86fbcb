"""Owns the checks, hints and known mistakes of `prefix-cache.lookup`."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from judge import compare
from judge.api import Case, Check, Details, Difference, Mistake

RUN = "judge.exercises.prefix_cache_run:hits"
COLD = "same_hash({!r})"  # as `ColdName` shows itself
Known = list[list[Any]]  # [[name, [blocks]], ...]


def case(
    names: Sequence[str], num_tokens: int, size: int, known: Known, *, cold: bool = False
) -> Case:
    shown: Callable[[str], str] = COLD.format if cold else repr
    table = ", ".join(f"{shown(name)}: {blocks}" for name, blocks in known)
    asked = ", ".join(map(shown, names))
    label = f"longest_hit([{asked}], {num_tokens}, {size}, defaultdict(list, {{{table}}}))"
    label = label if len(label) <= 400 else f"{label[:396]} ..."
    payload = {"names": list(names), "num_tokens": num_tokens, "block_size": size, "known": known,
               "cold": cold}  # fmt: skip
    return Case(label, payload)


def table(rng: random.Random, names: Sequence[str], most: int = 1) -> Known:
    """Each name with 1 to `most` blocks; ids in no order, never twice."""
    ids = rng.sample(range(500), most * len(names))
    return [[name, [ids.pop() for _ in range(rng.randint(1, most))]] for name in names]


def by_hand(rng: random.Random) -> Sequence[Case]:
    known: Known = [["a", [7]], ["b", [2]], ["c", [5]]]
    return [
        case(["a", "b", "c"], 14, 4, known),
        case(["a", "b", "z"], 14, 4, known),
        case(["z", "a", "b"], 14, 4, known),
        case(["a"], 5, 4, known),
        case([], 3, 4, known),
        case(["a", "b"], 9, 4, []),
        case([], 1, 1, []),
    ]


def whole_prompts(rng: random.Random) -> Sequence[Case]:
    """Every block is known: B * k tokens leave a block, one token more leaves none."""
    cases = []
    for size in (1, 4, 16):
        for blocks in (1, 2, rng.randint(3, 6)):
            names = [f"n{i}" for i in range(blocks)]
            for extra in {0, 1, size - 1}:
                cases.append(case(names, blocks * size + extra, size, table(rng, names)))
    return cases


def gaps(rng: random.Random) -> Sequence[Case]:
    """Names that are known behind one that is not."""
    cases = []
    for _ in range(8):
        names = [f"n{i}" for i in range(rng.randint(3, 9))]
        missing = rng.randrange(len(names) - 1)
        known = [name for i, name in enumerate(names) if i != missing]
        cases.append(case(names, 4 * len(names) + 1, 4, table(rng, known)))
    return cases


def several(rng: random.Random) -> Sequence[Case]:
    """Names that several blocks hold."""
    cases = []
    for _ in range(6):
        names = [f"n{i}" for i in range(rng.randint(2, 6))]
        cases.append(case(names, 4 * len(names) + 2, 4, table(rng, names, most=4)))
    return cases


def strange_hashes(rng: random.Random) -> Sequence[Case]:
    """Fresh objects as names, all of one hash."""
    cases = []
    for _ in range(5):
        names = [f"n{i}" for i in range(rng.randint(2, 6))]
        others = [f"m{i}" for i in range(4)]
        known = table(rng, rng.sample(others, 4) + names[: rng.randrange(len(names))], most=2)
        cases.append(case(names, 4 * len(names) + 1, 4, known, cold=True))
    return cases


def random_cases(rng: random.Random) -> Sequence[Case]:
    cases = []
    for _ in range(30):
        size = rng.choice([1, 2, 3, 8, 16])
        total = rng.randint(1, 10 * size)
        names = [f"n{i}" for i in range(total // size)]
        known = [name for name in names if rng.random() < 0.85] + ["x", "y"]
        rng.shuffle(known)
        cases.append(case(names, total, size, table(rng, known, most=3)))
    return cases


def long_lists(rng: random.Random) -> Sequence[Case]:
    """Long prompts of which little is known."""
    names = [f"n{i}" for i in range(500)]
    return [case(names, 16 * 500, 16, table(rng, names[:known])) for known in (0, 3, 40)]


def hit(case: Case, expected: Any, got: Any) -> Difference | None:
    if not compare.same(expected["value"], got["value"]):
        place = [case.label]
        if case.payload["cold"]:
            place.append("same_hash('n0') is a name: all of these have one hash(), == tells them")
        found = compare.error_or_wrong(expected["value"], got["value"], tuple(place))
        return Difference((*found.lines, *_why(case, expected["value"], got["value"])),
                          found.status, found.frames)  # fmt: skip
    if got["changed"]:
        what = f"the result is right, but the call changed {got['changed']}"
        return Difference((case.label, what))
    return None


def _why(case: Case, want: list[int], have: Any) -> list[str]:
    if not isinstance(have, list):
        return []
    size, total = case.payload["block_size"], case.payload["num_tokens"]
    if len(have) * size >= total:
        blocks, tokens = compare.counted(len(have), "block"), compare.counted(total, "token")
        verb = "covers" if len(have) == 1 else "cover"
        return [f"{blocks} of {size} {verb} all of {tokens}; one must be left"]
    if len(have) > len(want) < len(case.payload["names"]):
        name = case.payload["names"][len(want)]
        shown = COLD.format(name) if case.payload["cold"] else repr(name)
        return [f"the name {shown} ends the hit"]
    return []


def without_cost(case: Case, answer: Any) -> Any:
    """How many names were looked up is the business of the check "stops"."""
    return {"value": answer["value"], "changed": answer["changed"]}


def stops(case: Case, expected: Any, got: Any) -> Difference | None:
    """Policy: no name behind the first unknown one is looked up."""
    most = expected["asked"]
    if got["asked"] <= most:
        return None
    names = "1 name was" if got["asked"] == 1 else f"{got['asked']} names were"
    line = f"{names} looked up, {most} {'is' if most == 1 else 'are'} enough to know the hit"
    return Difference((case.label, line))


def _check(name: str, title: str, cases: Any) -> Check:
    return Check(name, title, RUN, cases, hit, normalize=without_cost)


EXERCISE = Details(
    checks=(
        _check("by-hand", "small cases that can be done by hand", by_hand),
        _check("whole-prompts", "at least one token is left to compute", whole_prompts),
        _check("gaps", "the hit ends at the first unknown name", gaps),
        _check("several", "the oldest of several blocks", several),
        _check("equal-hashes", "different names with one hash", strange_hashes),
        _check("random", "random names and tables", random_cases),
        Check("stops", "looks up no name behind the first unknown one", RUN, long_lists, stops,
              kind="policy"),
    ),
    hints=(
        "A prompt of 8 tokens in blocks of 4, and both its blocks are known. The engine samples "
        "from the logits of the last token: where would these come from if both blocks were taken?",
        "At most num_tokens - 1 tokens may come from the cache, in whole blocks: that bounds the "
        "number of names to look at, whatever is known. Within the bound the hit ends at the first "
        "unknown name, and asking for it must not make it known.",
        "how many whole blocks fit into all tokens but one: look at no more names than that\n"
        "go over these names in order:\n"
        "    ask the table without adding to it; unknown: the hit ends here\n"
        "    else the hit grows by the first of the name's blocks",
    ),
    mistakes=tuple(
        Mistake(name, {"longest_hit": f"judge.mistakes.prefix_cache_lookup:{function}"})
        for name, function in (
            ("the whole prompt is taken from the cache", "everything"),
            ("a block too many is left, also where tokens remain behind it", "always_one_less"),
            ("a whole prompt in the cache is taken for no hit at all", "all_or_nothing"),
            ("names behind an unknown one are hits, too", "skips_gaps"),
            ("names behind an unknown one are hits, too", "counts_hits_over_gaps"),
            ("the search goes from the end: the last known name decides", "from_the_end"),
            ("the newest block is hit, not the oldest", "newest"),
            ("the block with the smallest id is hit, not the oldest", "smallest"),
            ("all blocks of a name are returned", "all_blocks"),
            ("asking for an unknown name adds it to blocks_of", "adds_names"),
            ("an unknown name raises KeyError", "key_error"),
            ("KeyError is waited for, which a defaultdict doesn't raise", "waits_for_key_error"),
            ("names are compared by their hash", "by_hash"),
            ("the block is taken out of blocks_of", "takes_out"),
            ("the number of tokens is returned, not the blocks", "counts_tokens"),
            ("None is returned where nothing is known", "none_for_empty"),
        )
    ),
)  # fmt: skip
