"""Owns the checks, hints and known mistakes of `prefix-cache.cache`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from judge import compare, engine_checks
from judge.api import Case, Check, Details, Difference, Mistake
from judge.exercises.prefix_cache_scripts import Played, Script, script_lines
from judge.wire import Foreign, Raised

DRIVE = "judge.exercises.prefix_cache_script:drive"
SERVE = "judge.exercises.prefix_cache_script:serve_many"
SHOWN_CALLS = 9
PRIME = 2**61 - 1  # Python's hash of an int is taken modulo this number
GROWTH = 20_000  # bytes; the names of thousands of requests take far more


def ids(rng: random.Random, count: int) -> list[int]:
    return rng.sample(range(10, 1000), count)


def new_caches(rng: random.Random) -> Sequence[Case]:
    bad: list[Any] = [0, -1, -rng.randint(2, 9), 2.0, "4", None, True]
    cases = [Script(4, size).case("a new cache") for size in (1, 16, *bad)]
    return [*cases, Script(4, 4, enabled=False).call("reset").case("a new cache, not enabled")]


def tables(rng: random.Random) -> Sequence[Case]:
    """How many blocks, without any sharing; names and the order of the free list come later."""
    a, b = ids(rng, 30), ids(rng, 30)
    cases = []
    for count in (3, 4, 5, 8, 9):
        s = Script(6).step().look("a", a[:count]).call("admit", "a")
        s.call("can_grow", "a", count).call("grow", "a", count).end("a")
        cases.append(s.case(f"{count} tokens"))
    grown = Script(6).step().place("a", a[:14], upto=3)
    for upto in (4, 4, 5, 9, 13, 14):
        grown.step().call("can_grow", "a", upto).call("grow", "a", upto)
    cases.append(grown.end("a").case("grown in chunks"))
    lack = Script(5).step().place("a", a[:13], upto=11).look("b", b[:20]).call("admit", "b")
    for upto in (8, 9, 12):
        lack.call("can_grow", "b", upto)
    lack.call("grow", "b", 12).call("grow", "b", 8).call("can_grow", "b", 9)
    lack.call("grow", "b", 20).call("grow", "a", 12).call("grow", "a", 13).end("b", "a")
    cases.append(lack.case("too few free blocks"))
    return cases


def not_enabled(rng: random.Random) -> Sequence[Case]:
    a = ids(rng, 12)
    off = Script(6, enabled=False).serve("a", a[:9]).serve("b", a[:9])
    off.step().place("c", a[:12]).place("d", a[:9]).end("c", "d").call("take_back_names")
    return [off.call("reset").case("not enabled")]


def hits(rng: random.Random) -> Sequence[Case]:
    """What is found again, one request after another, with room for all."""
    a = ids(rng, 24)
    cases = []
    for count in (3, 4, 5, 8, 9, 16, 17):
        s = Script(16).serve("a", a[:count]).step().place("b", a[:count])
        cases.append(s.end("b").case(f"the same {count} tokens twice"))
    for place in (0, 5, 6, 11):
        other = [*a[:13]]
        other[place] = 5
        s = Script(16).serve("a", a[:13]).look("b", other)
        cases.append(s.case(f"token {place} differs"))
    start, again, block = ids(rng, 4), ids(rng, 4), ids(rng, 4)
    s = (
        Script(16)
        .serve("a", start + block + [1])
        .serve("b", [*again, 2])
        .look("c", again + block + [1])
    )
    cases.append(s.case("the same block behind another start"))
    s = Script(16).serve("a", block + start + [1]).look("b", start + block + [1])
    cases.append(s.case("the same two blocks in another order"))
    s = Script(16).serve("a", block * 3 + [1]).look("b", block * 4 + [1])
    cases.append(s.case("a block that repeats"))
    s = Script(16).serve("a", a).look("b", a[:11]).look("c", [*a, 1, 2, 3])
    cases.append(s.case("a shorter and a longer prompt"))
    return cases


def salts(rng: random.Random) -> Sequence[Case]:
    a, cases = ids(rng, 9), []
    for first, second in (("x", "x"), ("x", "y"), ("x", None), (None, "x"), ("", None), (None, "")):
        s = Script(12).serve("a", a, salt=first).look("b", a, salt=second)
        cases.append(s.case(f"salt {first!r}, then {second!r}"))
    return cases


def sharing(rng: random.Random) -> Sequence[Case]:
    """Reference counts, and hits on free blocks."""
    a, b = ids(rng, 17), ids(rng, 8)
    held = Script(10).step().place("a", a[:9]).step().place("b", a[:8] + b[:3])
    held.place("c", a[:4] + b[4:]).end("a").end("c").end("b")
    free = Script(10).serve("a", a[:9]).step().place("b", a[:8] + b[:1]).place("c", b)
    free.look("d", a).call("admit", "d").call("can_grow", "d", 17).call("grow", "d", 17)
    revived = Script(5).serve("a", a[:16]).serve("b", b[:4]).step().place("c", a[:13])
    twice = Script(6).step().place("a", a[:9]).call("lookup", "a").call("admit", "a")
    return [
        twice.case("admitted twice"),
        held.case("two and three holders"),
        free.end("b", "c", "d").case("a hit on free blocks"),
        revived.end("c").case("free blocks from the middle of the free list"),
    ]


def naming(rng: random.Random) -> Sequence[Case]:
    """When a block gets its name."""
    a, b = ids(rng, 16), ids(rng, 5)
    same = Script(10).step().place("a", a[:9]).place("b", a[:9]).place("c", a[:8] + b)
    chunks = Script(10).step().place("a", a, upto=3).look("x", a)
    for upto in (6, 8, 11, 12, 15):
        chunks.step().call("grow", "a", upto).look("x", a)
    output = Script(10).step().place("a", a[:6])
    for number in range(7):
        output.call("output", "a", 1 + number).step().call("grow", "a", 7 + number)
        if number in (1, 2, 5):
            output.look("x", a[:6] + list(range(1, 9)))
    output.end("a").look("x", a[:6] + list(range(1, 9)))
    again = Script(10).step().place("a", a[:10]).call("output", "a", 5).step()
    again.call("grow", "a", 11).end("a").call("lookup", "a").step().call("admit", "a")
    again.call("grow", "a", 11).call("output", "a", 6).step().call("grow", "a", 12).look("x", a)
    return [
        same.end("c", "b", "a").case("three of one step"),
        chunks.end("a").case("in chunks"),
        output.case("outputs"),
        again.end("a").case("preempted and back"),
    ]


def order(rng: random.Random) -> Sequence[Case]:
    """Who is reused first."""
    a, b, c = ids(rng, 18), ids(rng, 20), ids(rng, 20)
    ends = Script(8).step().place("a", a[:10]).end("a").step().place("b", b[:7]).end("b")
    two = Script(8).step().place("a", a[:9]).place("b", b[:9]).end("a", "b").step()
    two.place("c", c[:12]).end("c").look("x", a[:9]).look("y", b[:9])
    used = Script(8).serve("a", a[:8]).serve("b", b[:8]).serve("a2", a[:9]).serve("c", c[:16])
    used.look("x", a[:9]).look("y", b[:9])
    prefix = Script(4).serve("a", a[:16]).serve("b", b[:8]).step().place("c", a[:16])
    return [
        ends.case("named and unnamed blocks"),
        two.case("two requests one after another"),
        used.case("what was hit lately stays"),
        prefix.end("c").case("the end of a prefix goes before its start"),
    ]


def reuse(rng: random.Random) -> Sequence[Case]:
    """Names that die with the reuse of their block, and blocks of one name."""
    a, b, c = ids(rng, 16), ids(rng, 24), ids(rng, 24)
    gone = Script(3).serve("a", a[:9]).serve("b", b[:12]).look("x", a[:9]).look("y", b[:12])
    gone.serve("c", a[:9]).look("z", b[:12])
    alike = Script(8).step().place("a", a[:8]).place("b", a[:8]).step().place("c", a[:8])
    alike.look("x", a[:9]).end("a").look("x", a[:9]).end("b", "c").look("x", a[:9])
    alike.serve("d", b[:20]).look("x", a[:9]).serve("e", c[:12]).look("x", a[:9])
    kept = Script(3).serve("a", a[:4]).serve("b", a[:4]).serve("c", b[:4]).look("x", a[:5])
    kept.serve("d", c[:8]).look("x", a[:5])
    newer = Script(5).step().place("a", a[:8]).place("b", a[:8]).end("b")
    newer.serve("c", b[:12]).look("x", a[:9]).end("a").look("x", a[:9])
    return [
        gone.case("a block is reused"),
        newer.case("the newer of two blocks of a name is reused"),
        alike.case("three blocks of one name"),
        kept.case("one of two blocks of a name is reused"),
    ]


def still(rng: random.Random) -> Sequence[Case]:
    """Looking up and asking move nothing."""
    a, b = ids(rng, 20), ids(rng, 12)
    s = Script(8).serve("a", a[:16]).step().place("b", b[:9])
    for name, tokens in (("x", a), ("y", a[:9]), ("z", b), ("u", a[:3])):
        s.look(name, tokens).call("can_grow", name, 8).call("can_grow", name, 40).look(name, tokens)
    return [s.end("b").case("lookups without admission")]


def failures(rng: random.Random) -> Sequence[Case]:
    """Names of a step whose forward pass failed."""
    a, b = ids(rng, 16), ids(rng, 12)
    alone = Script(8).serve("o", b[:9]).step().place("a", a[:9]).call("take_back_names").end("a")
    alone.look("x", a[:9]).look("y", b[:9])
    both = Script(10).serve("o", a[:4]).step().place("a", a[:9]).place("b", a[:8] + b)
    both.call("take_back_names").end("b", "a").look("x", a[:9]).serve("y", a[:9])
    later = Script(10).step().place("a", a, upto=6).step().call("grow", "a", 13).place("b", b)
    later.call("take_back_names").end("b", "a").look("x", a).look("y", b)
    one = Script(10).step().place("a", a[:9]).step().place("b", b[:9]).look("x", a[:9])
    one.step().call("grow", "a", 9).place("c", [*b[:3], *a])
    one.call("take_back_names", "c").end("c").look("u", [*b[:3], *a]).look("y", a[:9])
    pair = Script(10).step().place("a", a[:9]).place("b", b[:9]).call("take_back_names", "b")
    pair.end("b").look("x", a[:9]).look("y", b[:9]).step().call("grow", "a", 9)
    pair.call("take_back_names").call("take_back_names", "a").look("x", a[:9])
    return [
        alone.case("one request"),
        both.case("two that share, on top of an older name"),
        later.case("older names stay"),
        one.case("the names of one request only"),
        pair.end("a").case("one of two, and nothing young is left"),
    ]


def resets(rng: random.Random) -> Sequence[Case]:
    a, b = ids(rng, 12), ids(rng, 8)
    used = Script(8).serve("a", a).step().place("b", b).call("reset").look("x", a).end("b")
    used.call("reset").look("x", a).look("y", b).serve("c", a).look("x", a).call("reset")
    return [used.case("while in use, then idle"), Script(3).call("reset").case("a new cache")]


def collisions(rng: random.Random) -> Sequence[Case]:
    """Different tokens with one hash(), in the own block and in the one before."""
    cases = []
    for place in (1, 5):
        a = ids(rng, 9)
        other = [*a]
        other[place] += PRIME
        s = Script(8).serve("a", a).look("b", other).serve("b", other).look("c", a)
        cases.append(s.case(f"token {place} differs, hash() does not"))
    return cases


def ids_again(rng: random.Random) -> Sequence[Case]:
    """A request_id that comes again with other tokens, another salt, more tokens."""
    a, b = ids(rng, 12), ids(rng, 12)
    other = Script(12).serve("a", a).serve("a", b).look("a", b).look("x", a).look("y", b)
    longer = Script(12).serve("a", a[:6]).serve("a", a).look("a", a)
    salted = Script(12).serve("a", a).serve("a", a, salt="x").look("a", a, salt="y")
    early = (
        Script(12).step().place("a", a).call("take_back_names").end("a").serve("a", a).look("a", a)
    )
    return [
        other.case("an id again with other tokens"),
        longer.case("an id again with more tokens"),
        salted.case("an id again with another salt"),
        early.case("an id again after a failed step"),
    ]


def random_scripts(rng: random.Random) -> Sequence[Case]:
    return [
        Played(rng, steps).case(f"{steps} random steps") for steps in (6, 10, 14, 14, 18, 18, 24)
    ]


def many(rng: random.Random) -> Sequence[Case]:
    """Thousands of names for a few blocks."""
    prompts = [[rng.randrange(4) for _ in range(8)] for _ in range(40)]
    prompts += [[rng.randrange(30_000) for _ in range(8)] for _ in range(600)]
    payload = {"num_blocks": 6, "block_size": 4, "prompts": prompts, "warm": 100}
    return [Case("640 requests, 6 blocks of 4", payload)]


def bounded(case: Case, answer: Any) -> Any:
    """How many bytes is free to choose, as long as it stops growing."""
    first, last = answer["kept"]
    return {"hits": answer["hits"], "grows": last - first > GROWTH}


def stays_small(case: Case, expected: Any, got: Any) -> Difference | None:
    if got["hits"] != expected["hits"]:
        number = [a == b for a, b in zip(expected["hits"], got["hits"], strict=True)].index(False)
        wanted = f"expected {expected['hits'][number]}, got {got['hits'][number]}"
        return Difference((case.label, f"request {number}, blocks hit: {wanted}"))
    if got["grows"]:
        lines = (
            "the hits are right, but what the cache keeps grows with every request",
            "6 blocks have 6 names at most; what belongs to reused blocks has to go",
        )
        return Difference((case.label, *lines))
    return None


def up_to_an_error(case: Case, answer: Any) -> Any:
    """Nothing behind the first error that no engine would survive: what it left has no meaning.

    OutOfBlocks is survived, and what admit refuses must have changed nothing.
    """
    for number, entry in enumerate(answer):
        value = entry["value"]
        if isinstance(value, Raised) and "OutOfBlocks" not in value.types:
            kept = {"value": value}
            if number and case.payload["calls"][number - 1][0] == "admit":
                kept["state"] = entry["state"]
            return [*answer[:number], kept]
    return answer


def counts_only(case: Case, answer: Any) -> Any:
    """Tables and counts: names and the order of the free list have checks of their own."""
    return _less(up_to_an_error(case, answer), free=True, named=True)


def any_order(case: Case, answer: Any) -> Any:
    """All but the order of the free list, which has a check of its own."""
    return _less(up_to_an_error(case, answer), free=True)


def _less(entries: Any, *, free: bool = False, named: bool = False) -> list[Any]:
    """States without what is left out; one that is None, as nothing changed, is written again."""
    found, last = [], None
    for entry in entries:
        state = entry.get("state")
        if state is not None:
            last = {**state}
            if free:
                last["free"] = sorted(state["free"])
            if named:
                last["named"] = []
        found.append({**entry, "state": last} if "state" in entry else entry)
    return found


def same_run(case: Case, expected: Any, got: Any) -> Difference | None:
    """The first call that returns, or leaves behind, something else than the reference's."""
    if not isinstance(got, list):
        return compare.error_or_wrong(expected, got, (case.label,))
    wanted: Any = None
    found: Any = None
    for number, want in enumerate(expected):
        have = got[number] if number < len(got) else {"value": Foreign("missing", "no answer")}
        if not compare.same(want["value"], have["value"]):
            return _wrong_value(case, number, expected, have["value"])
        wanted, found = want.get("state") or wanted, have.get("state") or found
        problem = _wrong_state(wanted, found) if wanted is not None else None
        if problem is not None:
            return Difference((*_calls(case, expected, number), "after it:", *problem))
    return None


def _wrong_value(case: Case, number: int, expected: Any, have: Any) -> Difference:
    want, place = expected[number]["value"], _calls(case, expected, number)
    if number == 0 and not isinstance(have, Raised) and not isinstance(want, Raised):
        return Difference((*place, "cache.pool is not the pool that it was made with"))
    if number == 0 and isinstance(want, Raised) and not isinstance(have, Raised):
        return Difference((*place, f"expected {want.type_name}, but it raised nothing"))
    found = compare.error_or_wrong(want, have, place)
    if number and case.payload["calls"][number - 1][0] == "lookup" and isinstance(have, list):
        return Difference((*found.lines, _about_hit(case, number, want, have)), found.status)
    return found


def _about_hit(case: Case, number: int, want: list[int], have: list[Any]) -> str:
    size, calls = case.payload["block_size"], case.payload["calls"][:number]
    (_, name) = calls[-1]
    tokens = sum(len(c[2]) for c in [c for c in calls if c[:2] == ["request", name]][-1:])
    if len(have) > len(want) and len(have) * size >= tokens:
        blocks = compare.counted(len(have), "block")
        verb = "leaves" if len(have) == 1 else "leave"
        return f"{blocks} of {size} {verb} none of {compare.counted(tokens, 'token')} to compute"
    return f"the right hit is {len(want) * size} of {compare.counted(tokens, 'token')}"


def _wrong_state(want: Any, have: Any) -> list[str] | None:
    """What is wrong with tables, counts, free list and names, the first of them in words."""
    for name, table in want["tables"].items():
        if not compare.same(table, have["tables"].get(name)):
            return [f"{name}.block_table:",
                    *compare.value_lines(table, have["tables"].get(name))]  # fmt: skip
    for block, (count, found) in enumerate(zip(want["counts"], have["counts"], strict=True)):
        if count != found:
            wanted = compare.counted(count, "holder")
            return [f"block {block}: expected {wanted}, got {found}"]
    if want["free"] != have["free"]:
        return ["free list, reused next first:", *compare.value_lines(want["free"], have["free"])]
    if not compare.same(want["named"], have["named"]):
        if not isinstance(have["named"], list):
            return [f"is_named returned {compare.show(have['named'])}, expected a bool"]
        return ["blocks with a name:", *compare.value_lines(want["named"], have["named"])]
    return None


def _calls(case: Case, expected: Any, number: int) -> tuple[str, ...]:
    """The call in question and those before it, lookups with their answers."""
    lines = script_lines(case.payload)
    if number == 0:
        return (case.label, lines[0])
    first = max(1, number - SHOWN_CALLS)
    shown = [case.label, lines[0]]
    if first > 1:
        shown.append(f"  ... {first - 1} more call{'s' if first > 2 else ''}")
    for earlier in range(first, number):
        value = expected[earlier]["value"]
        arrow = "" if value is None else f"  -> {compare.show(value, 80)}"
        shown.append(f"{lines[earlier]}{arrow}")
    return (*shown, f"{lines[number]}  <- call {number} of {len(lines) - 1}")


def _check(name: str, title: str, cases: Any, normalize: Any = up_to_an_error) -> Check:
    return Check(name, title, DRIVE, cases, same_run, normalize=normalize, script=whole_script)


def whole_script(case: Case) -> list[str]:
    return script_lines(case.payload)


MISTAKES = (
    ("names hold a block's own tokens only, not what came before", "OwnTokens"),
    ("the salt is left out of the names", "NoSalt"),
    ("an empty salt counts as none", "FalsySalt"),
    ("hash() is taken for a name", "PythonHash"),
    ("the whole prompt is taken from the cache", "WholePrompt"),
    ("a block too many is left, also where tokens remain behind it", "AlwaysOneLess"),
    ("the newest block of a name is hit, not the oldest", "Newest"),
    ("a name leads to one block only: the newest replaces the others", "LastWins"),
    ("a name leads to one block only: later ones are not remembered", "FirstWins"),
    ("a name leads to one block only: later ones are not remembered", "FirstWinsLater"),
    ("a block that is not full gets a name", "NamesPartial"),
    ("blocks are named before the step that fills them", "NamedEarly"),
    ("blocks are named only after the step that fills them", "NamedLate"),
    ("blocks filled by outputs get no name", "PromptOnly"),
    ("a reused block keeps its old name", "StaleName"),
    ("a reused block keeps its old name", "StaleTable"),
    ("a reused block keeps its old name", "StaleTableAgeless"),
    ("a reused block keeps its old name", "StaleTableRenames"),
    ("a reused block keeps its old name", "NeverForgets"),
    ("a reused block keeps its old name", "NeverForgetsOnce"),
    ("the blocks of a hit are named once more by grow", "AdmitCountsNone"),
    ("the blocks of a hit are named once more by grow", "AdmitCountsNoneOnce"),
    ("a block that loses its name takes the name from all blocks that have it", "ForgetsAll"),
    (
        "a block that loses its name takes the name from all blocks that have it",
        "ForgetsAllOrFails",
    ),
    ("a block gets no name in the step whose last token fills it", "OneTokenLate"),
    ("blocks are named only after the step that fills them", "NamedByNextGrow"),
    ("blocks are named only after the step that fills them", "NamedByNextGrowRenames"),
    ("a block that is not full yet counts as named", "CeilCounts"),
    ("names are lost when the request is released", "LostOnRelease"),
    ("names of reused blocks are never removed from the table", "Unbounded"),
    ("blocks are released from the first to the last", "FirstToLast"),
    ("every block is released to the front of the free list", "AllToFront"),
    ("every block is released to the back of the free list", "AllToBack"),
    ("named blocks go to the front of the free list, unnamed to the back", "EndsSwapped"),
    ("lookup already takes a share of the blocks", "LookupShares"),
    ("lookup and admit both take a share of the blocks", "SharesTwice"),
    ("lookup moves the blocks in the free list", "LookupTouches"),
    ("admit does not count the new holder", "NoShare"),
    ("admit does not take free blocks off the free list", "SharesUsedOnly"),
    ("admit does not count the new holder", "NoShareRenames"),
    ("admit does not take free blocks off the free list", "SharesUsedOnlyRenames"),
    ("a request that holds blocks is admitted again", "AdmitsTwice"),
    ("the list of the lookup becomes the block table itself", "KeepsHit"),
    ("can_grow forgets the blocks that the request has", "ForgetsTable"),
    ("can_grow wants a block more than is needed", "OneTooMany"),
    ("the last block, which is not full, is not allocated", "RoundsDown"),
    ("a block is allocated for the token to be sampled", "RoundsUp"),
    ("blocks are taken before OutOfBlocks is raised", "TakesThenRaises"),
    ("blocks are taken before OutOfBlocks is raised", "TakesAndLoses"),
    ("blocks are taken before OutOfBlocks is raised", "TakesThenForgets"),
    ("the names of a failed step stay", "KeepsFailedNames"),
    ("take_back_names without a request removes nothing", "TakesNoneForAll"),
    ("take_back_names removes older names, too", "TakesOldNames"),
    ("take_back_names removes the names of all requests, whichever is given", "TakesEverybodys"),
    (
        "take_back_names removes the names of all requests, whichever is given",
        "TakesEverybodysRenames",
    ),
    ("names stay young after begin_step", "ForeverYoung"),
    ("names stay young after begin_step", "ForeverYoungRenames"),
    ("the count of named blocks survives release", "KeepsNumNamed"),
    ("names are kept under a request_id that comes again", "ByRequestId"),
    ("reset forgets all names while blocks are in use", "ResetInUse"),
    ("reset forgets all names while blocks are in use", "ResetInUseRenames"),
    ("reset does not forget the names", "ResetKeeps"),
    ("enabled=False is ignored", "AlwaysEnabled"),
    ("the table is not emptied by release", "KeepsTable"),
)

EXERCISE = Details(
    checks=(
        _check("new-cache", "a new cache; block sizes below 1 are refused", new_caches),
        _check("tables", "as many blocks as the tokens need, or OutOfBlocks", tables, counts_only),
        _check("naming", "when a block gets its name", naming, any_order),
        _check("order", "the order of the free list: what is reused first", order),
        _check("not-enabled", "enabled=False: no names, no hits", not_enabled),
        _check("hits", "what is found again, and how much of it", hits),
        _check("salts", "another salt, no hit", salts),
        _check("sharing", "reference counts, and hits on free blocks", sharing),
        _check("reuse", "names die with the reuse of their block; the oldest is hit", reuse),
        _check("still", "lookup and can_grow change nothing", still),
        _check("failed-step", "young names are taken back, older ones stay", failures),
        _check("reset", "reset refuses while blocks are in use", resets),
        _check("collisions", "equal hash(), no hit", collisions),
        _check("ids-again", "a request_id may come again", ids_again),
        _check("random", "random steps, everything looked at after each call", random_scripts),
        Check(
            "bounded",
            "what is kept does not grow with the requests",
            SERVE,
            many,
            stays_small,
            normalize=bounded,
        ),
        *engine_checks.control_plane_checks(),
        engine_checks.tiny_check(spare=True, debug=True),
        engine_checks.smollm2_check(),
    ),
    hints=(
        "Which two questions does the cache have to answer quickly: which block has this name, and "
        "which name does this block have? What must happen to both answers when the pool hands "
        "that block out again?",
        "Two tables that mirror each other: name to blocks, oldest first, and block to name. A "
        "name appears in one place (grow, for blocks that this step fills) and disappears in three "
        "(reuse of the block, take_back_names, reset). Admission is the only place that adds "
        "holders, release the only one that takes them away; lookup and can_grow only read.",
        "lookup: nothing if not enabled; else the names of the request, and the longest known run\n"
        "admit: refuse a table that isn't empty; one more holder for each block; fill the table; "
        "these blocks have their names already, so count them as named\n"
        "grow: how many blocks are missing? allocate; each new block loses the name it had;\n"
        "      then name the blocks up to the last full one that have none yet, as young ones\n"
        "release: from the last block to the first, to the end that its name decides; empty table\n"
        "a block loses its name: it alone leaves the list of the name, others may stand there\n"
        "begin_step: nobody is young; take_back_names: drop the young names asked for\n"
        "reset: only if all blocks are free",
    ),
    mistakes=tuple(
        Mistake(name, {"PrefixCache": f"judge.mistakes.prefix_cache:{kind}"})
        for name, kind in MISTAKES
    ),
)
