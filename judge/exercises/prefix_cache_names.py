"""Owns the checks, hints and known mistakes of `prefix-cache.names`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from judge import compare
from judge.api import Case, Check, Details, Difference, Mistake
from judge.wire import Raised

CLASSES = "judge.exercises.prefix_cache_run:name_classes"
READS = "judge.exercises.prefix_cache_run:reads_per_token"
ROOM = "judge.exercises.prefix_cache_run:room_of_names"
LONG = "judge.exercises.prefix_cache_run:found_again"
MOST_READS = 4.0  # a copy of the list, and each block sliced once or twice
PRIME = 2**61 - 1  # Python's hash of an int is taken modulo this number
MOST_ROOM = 4  # times the room of the first name; an int of a digest may be a few bytes longer
SLOW = "the whole prefix is read for every block"
Prompt = list[Any]  # [token ids, block size, salt]


def case(label: str, *prompts: tuple[Sequence[int], int, str | None]) -> Case:
    return Case(label, {"prompts": [[list(ids), size, salt] for ids, size, salt in prompts]})


def tokens(rng: random.Random, count: int) -> list[int]:
    return [rng.randrange(1000) for _ in range(count)]


def lengths(rng: random.Random) -> Sequence[Case]:
    """How many names: full blocks only."""
    cases = [
        case("10 tokens in blocks of 4", (range(10), 4, None)),
        case("no tokens", ([], 4, None)),
    ]
    for size in (1, 4, 16):
        for count in (size - 1, size, size + 1, 3 * size - 1, 3 * size):
            cases.append(
                case(f"{count} tokens in blocks of {size}", (tokens(rng, count), size, None))
            )
    return cases


def chains(rng: random.Random) -> Sequence[Case]:
    """Equal as long as everything from the start is equal."""
    ids = tokens(rng, 16)
    cases = [case("the same prompt twice", (ids, 4, None), (list(ids), 4, None))]
    for place in (0, 5, 6, 11, 15):
        other = [*ids]
        other[place] += 1
        cases.append(case(f"token {place} differs", (ids, 4, None), (other, 4, None)))
    block, start = tokens(rng, 4), tokens(rng, 4)
    again, end = tokens(rng, 4), tokens(rng, 4)
    cases += [
        case("the same block behind different starts", ([*start, *block], 4, None),
             ([*again, *block], 4, None)),
        case("two blocks alike behind different starts", ([*start, *block, *end], 4, None),
             ([*again, *block, *end], 4, None)),
        case("the same block three times in a prompt", (block * 3, 4, None)),
        case("the first two blocks change places", ([*start, *block, *end], 4, None),
             ([*block, *start, *end], 4, None)),
        case("the tokens of a block in another order", (block, 4, None), (block[::-1], 4, None)),
        case("one prompt is longer", (ids, 4, None), (ids[:11], 4, None)),
    ]  # fmt: skip
    return cases


def salts(rng: random.Random) -> Sequence[Case]:
    ids = tokens(rng, 12)
    one, other = rng.sample(["ann", "bob", "team 7", "x"], 2)
    return [
        case("two salts", (ids, 4, one), (ids, 4, other), (ids, 4, one)),
        case("a salt and none", (ids, 4, one), (ids, 4, None)),
        case("an empty salt and none", (ids, 4, ""), (ids, 4, None), (ids, 4, "")),
        case("salts that look like None and numbers", (ids, 4, "None"), (ids, 4, None),
             (ids, 4, "0"), (ids, 4, "")),
        case("a salt that begins like another", (ids, 4, one), (ids, 4, one + str(ids[0]))),
    ]  # fmt: skip


def look_alikes(rng: random.Random) -> Sequence[Case]:
    """Different prompts that careless encodings take for one."""
    a, b, c, d = rng.sample(range(1, 10), 4)
    cases = [
        case("digits that join to the same text", ([a, 10 * b + c, d, a], 4, None),
             ([10 * a + b, c, d, a], 4, None)),
        case("the same sum", ([a, b, c, d], 4, None), ([a + 1, b, c, d - 1], 4, None)),
        case("tokens that are equal modulo 256", ([a, b, c, d], 4, None),
             ([a + 256, b, c, d], 4, None)),
        case("tokens that are equal modulo 65536", ([a, b, c, d], 4, None),
             ([a, b + 65536, c, d], 4, None)),
        case("tokens that are equal modulo 2**32", ([a, b, c, d], 4, None),
             ([a, b, c + 2**32, d], 4, None)),
        case("a salt of digits beside the first token", ([b, c, d, a], 4, str(a)),
             ([10 * a + b, c, d, a], 4, "")),
    ]  # fmt: skip
    return cases


def collisions(rng: random.Random) -> Sequence[Case]:
    """Different token ids with one hash()."""
    cases = []
    for place in (0, rng.randrange(4, 8), 11):
        ids = tokens(rng, 12)
        other = [*ids]
        other[place] += PRIME
        cases.append(
            case(f"token {place} differs, hash() does not", (ids, 4, None), (other, 4, None))
        )
    return cases


def random_cases(rng: random.Random) -> Sequence[Case]:
    """Few different tokens, so that many starts are alike; and one case with many names."""
    cases = []
    for number in range(12):
        size = rng.choice([1, 2, 3, 5])
        prompts: list[tuple[list[int], int, str | None]] = []
        for _ in range(6):
            ids = [rng.randrange(2) for _ in range(rng.randint(0, 6 * size))]
            if prompts and rng.random() < 0.5:
                earlier = prompts[-1][0]
                ids = earlier[: rng.randint(0, len(earlier))] + ids
            prompts.append((ids, size, rng.choice([None, None, "x", "y"])))
        cases.append(case(f"random prompts, number {number}, blocks of {size}", *prompts))
    many = [([*tokens(rng, 300)], 1, None) for _ in range(10)]
    return [*cases, case("3,000 names", *many)]


def refused(rng: random.Random) -> Sequence[Case]:
    ids = tokens(rng, 8)
    return [
        case(f"a block size of {size}", (ids, size, None))
        for size in (0, -1, -rng.randint(2, 9))
    ] + [case("a block size of 0 and no tokens", ([], 0, None))]  # fmt: skip


def long_prompts(rng: random.Random) -> Sequence[Case]:
    return [
        Case(f"{count:,} tokens in blocks of {size}",
             {"count": count, "block_size": size, "seed": rng.randrange(10**6)})
        for count, size in ((400, 4), (2000, 8))
    ]  # fmt: skip


def roomy_prompts(rng: random.Random) -> Sequence[Case]:
    payload = {"count": 2000, "block_size": 4, "seed": rng.randrange(10**6)}
    return [Case("2,000 tokens in blocks of 4", payload)]


def longest_prompt(rng: random.Random) -> Sequence[Case]:
    payload = {"count": 80_000, "block_size": 4, "seed": rng.randrange(10**6)}
    return [Case("80,000 tokens in blocks of 4", payload, {"if_timeout": SLOW})]


def same_classes(case: Case, expected: Any, got: Any) -> Difference | None:
    """The first prompt whose names are wrong, and with which block they are confused."""
    seen: list[tuple[int, int]] = []  # (prompt, block) of every name so far
    numbers: dict[int, tuple[int, int]] = {}
    theirs: dict[int, tuple[int, int]] = {}
    for number, (want, have) in enumerate(zip(expected, got, strict=True)):
        place = (case.label, *_prompts(case, number))
        names, found = want["names"], have["names"]
        if not isinstance(names, list) or not isinstance(found, list):
            if compare.same(names, found):
                continue
            return _no_list(names, found, place)
        if len(names) != len(found):
            count = compare.counted(len(names), "name")
            return Difference((*place, f"expected {count}, one per full block, got {len(found)}"))
        for block, (mine, yours) in enumerate(zip(names, found, strict=True)):
            here = (number, block)
            wanted, met = numbers.get(mine), theirs.get(yours)
            if wanted != met:
                return Difference((*place, *_confused(here, wanted, met)))
            numbers.setdefault(mine, here)
            theirs.setdefault(yours, here)
            seen.append(here)
        if have["changed"]:
            return Difference((*place, "the names are right, but the call changed token_ids"))
    return None


def _no_list(names: Any, found: Any, place: tuple[str, ...]) -> Difference:
    """An exception on one side, or no list; the judge's own numbers for names are not shown."""
    if isinstance(names, Raised):
        if not isinstance(found, list):
            return compare.error_or_wrong(names, found, place)
        returned = f"a list of {compare.counted(len(found), 'name')}"
        return Difference((*place, f"expected {names.type_name}, but it returned {returned}"))
    wanted = f"a list of {compare.counted(len(names), 'name')}"
    if isinstance(found, Raised):
        lines = (*place, f"expected {wanted}, but it raised {compare.show(found)}")
        return Difference((*lines, *compare.about_raised(found)), "error", found.frames)
    line = f"expected {wanted}, got a {compare.type_name(found)}: {compare.show(found, 80)}"
    none = ("None is what a function without a return gives",) if found is None else ()
    return Difference((*place, line, *none))


def _prompts(case: Case, last: int) -> list[str]:
    lines = []
    for number, (ids, size, salt) in enumerate(case.payload["prompts"][: last + 1][:6]):
        extra = "" if salt is None else f", {salt!r}"
        lines.append(f"prompt {number}: block_names({compare.show(ids, 120)}, {size}{extra})")
    return lines


def _confused(
    here: tuple[int, int], wanted: tuple[int, int] | None, met: tuple[int, int] | None
) -> list[str]:
    text = f"name {here[1]} of prompt {here[0]}: "
    if wanted is None:
        assert met is not None
        return [f"{text}expected a new one, got the same as name {met[1]} of prompt {met[0]}"]
    old = f"name {wanted[1]} of prompt {wanted[0]}"
    if met is None:
        return [f"{text}expected the same as {old} (all up to there is equal), got another"]
    return [f"{text}expected the same as {old}, got that of name {met[1]} of prompt {met[0]}"]


def linear(case: Case, answer: Any) -> Any:
    """How many reads exactly is free to choose, up to the bound."""
    return {"names": answer["names"], "too many": answer["reads"] > MOST_READS}


def few_reads(case: Case, expected: Any, got: Any) -> Difference | None:
    if not compare.same(expected["names"], got["names"]):
        lines = (case.label, "the number of names:")
        return compare.error_or_wrong(expected["names"], got["names"], lines)
    if got["too many"]:
        reads = f"every token was read more than {MOST_READS:.0f} times on average"
        return Difference((case.label, reads, "each name needs its parent and its own tokens only"))
    return None


def steady(case: Case, answer: Any) -> Any:
    """How large a name is is free to choose, as long as it does not grow with the position."""
    return {"names": answer["names"], "grows": answer["last"] > MOST_ROOM * answer["first"]}


def same_room(case: Case, expected: Any, got: Any) -> Difference | None:
    if not compare.same(expected["names"], got["names"]):
        lines = (case.label, "the number of names:")
        return compare.error_or_wrong(expected["names"], got["names"], lines)
    if got["grows"]:
        return Difference((
            case.label,
            f"the last name takes more than {MOST_ROOM} times the room of the first",
            "a name that holds its parent holds the whole prefix: comparing and hashing it reads",
            "all of that each time; take a digest, which stands for the parent in a few bytes",
        ))  # fmt: skip
    return None


def usable(case: Case, expected: Any, got: Any) -> Difference | None:
    """The reads, and the names as keys of a dict, asked for by those of a second call."""
    problem = few_reads(case, expected, got)
    if problem is None and not compare.same(expected["found"], got["found"]):
        lines = (case.label, "all names in a dict; how many of a second call's names are in it:")
        return compare.error_or_wrong(expected["found"], got["found"], lines)
    return problem


def linear_and_found(case: Case, answer: Any) -> Any:
    return {**linear(case, answer), "found": answer["found"]}


def _check(name: str, title: str, cases: Any) -> Check:
    return Check(name, title, CLASSES, cases, same_classes)


EXERCISE = Details(
    checks=(
        _check("lengths", "one name for each full block", lengths),
        _check("chain", "equal as long as everything from the start is equal", chains),
        _check("salts", "another salt, another name", salts),
        _check("look-alikes", "no two prompts are taken for one", look_alikes),
        _check("collisions", "equal hash(), different names", collisions),
        _check("random", "random prompts", random_cases),
        _check("refuses", "a block size below 1 is a ValueError", refused),
        Check("reads", "each token is read a few times at most", READS, long_prompts, few_reads,
              normalize=linear),
        Check("size", "a name is as small far behind as at the start", ROOM, roomy_prompts,
              same_room, normalize=steady),
        Check("long", "a long prompt is named, and found again in a dict, in little time", LONG,
              longest_prompt, usable, normalize=linear_and_found, last=True),
    ),
    hints=(
        "Two prompts hold the same four tokens in their second block, and differ in the first. May "
        "the second block be shared? What must a name know about the blocks before, and in what "
        "short form could it know it?",
        "The parent's name already stands for everything before the block, the salt included. So "
        "a digest of (parent's name, own tokens, salt) is enough: it has the same size for every "
        "block, and the tuple itself would hold all tuples before it. What goes into a digest must "
        "be unambiguous: where one number ends and the next begins, and None apart from the empty "
        "string.",
        "refuse a block size below 1\n"
        "the first block's parent is something fixed\n"
        "go over the ends of the full blocks, in steps of the block size:\n"
        "    put parent, own tokens and salt into one value, and take its digest\n"
        "    that is the block's name, and the next block's parent",
    ),
    mistakes=tuple(
        Mistake(name, {"block_names": f"judge.mistakes.prefix_cache_names:{function}"})
        for name, function in (
            ("a name holds the block's own tokens only", "own_tokens"),
            ("the salt is left out", "no_salt"),
            ("an empty salt counts as none", "falsy_salt"),
            ("the salt's text stands for it, so None is the salt 'None'", "salt_as_text"),
            ("a block that is not full gets a name", "partial"),
            ("the last full block has no name", "leaves_last"),
            ("the position stands for the parent", "position"),
            ("only the block just before is looked at, not the whole start", "one_back"),
            ("only the first block and the own one are looked at", "first_and_own"),
            ("the order of the tokens in a block is lost", "no_order"),
            ("the order of the blocks is lost", "blocks_mixed"),
            ("numbers are joined without a separator", "joined"),
            ("tokens are cut to 8 bits", "eight_bits"),
            ("tokens are cut to 16 bits", "sixteen_bits"),
            ("tokens are cut to 32 bits", "thirty_two_bits"),
            ("tokens are packed into 4 bytes, so 2**32 and more do not fit", "four_bytes"),
            ("hash() is taken for a name", "python_hash"),
            ("equal blocks of two calls get different names", "fresh"),
            ("token_ids is changed", "eats"),
            ("a negative block size is not refused", "negative_size"),
            ("a block size of 0 raises Python's own ZeroDivisionError", "zero_division"),
            (SLOW, "whole_prefix"),
            ("a name holds its parent, and with it the whole prefix", "nested"),
        )
    ),
)  # fmt: skip
