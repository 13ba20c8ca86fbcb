"""Owns the checks, hints and known mistakes of `paged-kv.block-pool`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from judge import compare, engine_checks
from judge.api import Case, Check, Details, Difference, Mistake
from judge.wire import Raised, Ref

SCRIPT = "judge.execute:call_script"
Call = list[Any]


def call(name: str, *args: Any, **kwargs: Any) -> Call:
    return [name, list(args), kwargs]


def script(label: str, size: Any, calls: list[Call], observe: list[Any], **extra: Any) -> Case:
    payload = {"class": "BlockPool", "args": [size], "calls": calls, "observe": observe, **extra}
    return Case(label, payload)


def everything(size: int) -> list[Any]:
    """All that can be seen of a pool, without changing it."""
    counts = [["ref_count", [block]] for block in range(size)]
    return [["num_free", []], ["free_block_ids", []], *counts]


FREE_ONLY: list[Any] = [["num_blocks", []], ["num_free", []]]


def new_pools(rng: random.Random) -> Sequence[Case]:
    sizes = [1, 2, rng.randint(3, 50), 1000]
    good = [script(f"a pool of {size}", size, [], FREE_ONLY) for size in sizes]
    bad: list[Any] = [0, -1, -rng.randint(2, 9), 2.0, "4", None, True]
    return good + [script(f"a pool of {size!r}", size, [], FREE_ONLY) for size in bad]


def allocations(rng: random.Random) -> Sequence[Case]:
    size = rng.randint(5, 12)
    part = rng.randint(2, size - 2)
    counts = [part, 0, size - part + 1, size - part, 0, 1, -1]
    calls = [call("allocate", count) for count in counts]
    return [
        script("take all", size, [call("allocate", size)], FREE_ONLY),
        script("take parts, ask for too many", size, calls, FREE_ONLY),
        script("ask for too many at once", size, [call("allocate", size + 1)], FREE_ONLY),
        script("a negative count", size, [call("allocate", -1), call("allocate", 1)], FREE_ONLY),
    ]


def holders(rng: random.Random) -> Sequence[Case]:
    """Counts of holders, one block in several tables, a block freed once too often."""
    size = rng.randint(4, 9)
    first, second = Ref(0, 0), Ref(0, 1)
    count_first, count_second = call("ref_count", first), call("ref_count", second)
    shared = [call("allocate", 2), call("share", first), call("share", first), count_first]
    freed = [call("free", first), count_first, count_second]
    return [
        script("one holder", size, [*shared[:1], count_first, *freed, count_first], FREE_ONLY),
        script("three holders", size, [*shared, *freed * 3], FREE_ONLY),
        script("freed twice", size, [*shared[:1], *freed, *freed, count_first], FREE_ONLY),
        script(
            "held again after it was free",
            size,
            [*shared[:1], call("free", first), call("share", first), count_first, *freed],
            FREE_ONLY,
        ),
    ]


def order(rng: random.Random) -> Sequence[Case]:
    """Who is reused when: front, back, the middle of the free list."""
    size = rng.randint(6, 9)
    start = [call("free_block_ids"), call("allocate", 4)]
    blocks = [Ref(1, index) for index in range(4)]
    front = [call("free", block) for block in blocks[:3]]
    back = [call("free", block, to_front=False) for block in blocks[:3]]
    mixed = [
        call("free", blocks[0], to_front=False),
        call("free", blocks[1], to_front=True),
        call("free", blocks[2]),
        call("free", blocks[3], to_front=False),
    ]
    middle = [*mixed, call("share", blocks[1]), call("share", Ref(0, size - 1))]
    take = [call("allocate", 3)]
    observe = everything(size)
    return [
        script("freed to the front", size, [*start, *front, *take], observe),
        script("freed to the back", size, [*start, *back, *take], observe),
        script("freed to both ends", size, [*start, *mixed, *take], observe),
        script("taken from the middle", size, [*start, *middle, *take], observe),
    ]


def outside(rng: random.Random) -> Sequence[Case]:
    """Ids that no block has. A negative id must not count from the end."""
    size = rng.randint(3, 6)
    calls = [call("free_block_ids"), call("allocate", size - 1)]
    for block in (-1, size, -size, size + rng.randint(1, 40)):
        calls += [call(name, block) for name in ("ref_count", "share", "free")]
    return [script("ids outside the pool", size, calls, everything(size))]


def random_scripts(rng: random.Random) -> Sequence[Case]:
    return [random_script(rng, length) for length in (25, 40, 60, 60)]


def spoiled(rng: random.Random) -> Sequence[Case]:
    """The same, but every list that the pool returned is overwritten by its caller."""
    return [random_script(rng, 25, spoil=True) for _ in range(2)]


def random_script(rng: random.Random, length: int, **extra: Any) -> Case:
    """Random calls; a small model of the pool keeps most of them legal, and some not."""
    size = rng.randint(3, 10)
    calls = [call("free_block_ids")]
    held: dict[int, int] = {}  # index in the first free list -> holders
    free = list(range(size))
    while len(calls) < length:
        kind = rng.random()
        if kind < 0.35:
            count = rng.randint(0, max(1, len(free) // 2)) if rng.random() < 0.8 else size
            calls.append(call("allocate", count))
            if count <= len(free):
                taken, free = free[:count], free[count:]
                held |= dict.fromkeys(taken, 1)
        elif kind < 0.6:
            block = rng.randrange(size)
            calls.append(call("share", Ref(0, block)))
            held[block] = held.get(block, 0) + 1
            free = [other for other in free if other != block]
        else:
            block = rng.choice(list(held)) if held and rng.random() < 0.85 else rng.randrange(size)
            to_front = rng.random() < 0.5
            calls.append(call("free", Ref(0, block), to_front=to_front))
            if block in held:
                held[block] -= 1
                if not held[block]:
                    del held[block]
                    free = [block, *free] if to_front else [*free, block]
    return script(f"{length} random calls on {size} blocks", size, calls, everything(size), **extra)


def first_ids(rng: random.Random) -> Sequence[Case]:
    size = rng.randint(3, 9)
    return [script("a new pool", size, [call("free_block_ids"), call("allocate", 2)], FREE_ONLY)]


def pool_answer(case: Case, expected: Any, got: Any) -> Difference | None:
    """Compare with the reference, its blocks renamed: which ids come first is free to choose."""
    if isinstance(got, list):
        expected = _rename(case.payload, expected, got)
    found = compare.script_answer(case, expected, got)
    if found is None:
        return None
    seen = got[: _failed_call(found) + 1] if isinstance(got, list) else []
    lines = (*found.lines, *_about_blocks(case.payload, seen))
    return Difference(lines, found.status, found.frames)


def _failed_call(found: Difference) -> int:
    """The number of the call that a difference is about; 0 is making the pool."""
    marked = [line.rpartition("<- call ")[2] for line in found.lines if "<- call " in line]
    return int(marked[0].split()[0]) if marked else 0


def own_lists(case: Case, expected: Any, got: Any) -> Difference | None:
    """As `pool_answer`, with what the judge did to the lists that it got."""
    found = pool_answer(case, expected, got)
    if found is None or not isinstance(got, list):
        return found
    during = any(line.startswith("after it, ") for line in found.lines)
    lists = [
        f"r{number - 1} ({name})"
        for number, (name, _, _) in enumerate(case.payload["calls"], start=1)
        if number < _failed_call(found) + during
        and number < len(got)
        and isinstance(got[number].get("value"), list)
    ]
    if not lists:
        return found
    told = f"the judge changed the list {lists[-1]}, as a caller may: the pool works with that list"
    if len(lists) > 1:
        told = (
            "the judge changed every list that it got, as a caller may, the last ones being "
            f"{' and '.join(lists[-2:])}: the pool works with one of them"
        )
    told += " and should have returned a copy"
    return Difference((*found.lines, told), found.status, found.frames)


def _rename(payload: Any, expected: list[Any], got: list[Any]) -> list[Any]:
    """The reference's answers in the learner's ids, as far as those make sense."""
    if isinstance(expected[0]["value"], Raised):
        return expected
    size = payload["args"][0]
    names = _names(payload, expected, got, size)
    renamed = []
    for number, answer in enumerate(expected):
        name = payload["calls"][number - 1][0] if number else None
        value = answer["value"]
        if name in ("allocate", "free_block_ids") and isinstance(value, list):
            value = [names[block] for block in value]
        state = answer.get("state")
        if state and len(state) == len(everything(size)):
            counts: list[Any] = [None] * size
            for block in range(size):
                counts[names[block]] = state[2 + block]
            state = [state[0], [names[block] for block in state[1]], *counts]
        renamed.append({"value": value, "state": state})
    return renamed


def _names(payload: Any, expected: list[Any], got: list[Any], size: int) -> dict[int, int]:
    """Reference id -> learner's id: by place in the first free list, else by first appearance."""
    names: dict[int, int] = {}
    for number, (name, _, _) in enumerate(payload["calls"], start=1):
        if number >= len(got) or name not in ("allocate", "free_block_ids"):
            continue
        theirs, ours = got[number].get("value"), expected[number]["value"]
        if isinstance(ours, list) and isinstance(theirs, list):
            for mine, yours in zip(ours, theirs, strict=False):
                legal = type(yours) is int and 0 <= yours < size and yours not in names.values()
                if legal and mine not in names:
                    names[mine] = yours
    rest = [block for block in range(size) if block not in names.values()]
    for block in range(size):
        if block not in names:
            names[block] = rest.pop(0)
    return names


def _about_blocks(payload: Any, got: list[Any]) -> list[str]:
    """A sentence for the first list of blocks that no pool may return."""
    size = payload["args"][0]
    for (name, _, _), answer in zip(payload["calls"], got[1:], strict=False):
        value = answer.get("value")
        if name not in ("allocate", "free_block_ids") or not isinstance(value, list):
            continue
        if any(type(block) is not int or not 0 <= block < size for block in value):
            return [f"{name} returned something that is no block id (an int, 0 to {size - 1})"]
        if len(set(value)) < len(value):
            return [f"{name} returned a block twice: {value}"]
    return []


def ids_in_order(case: Case, expected: Any, got: Any) -> Difference | None:
    return compare.script_answer(case, expected, got)


def _check(name: str, title: str, cases: Any, compare_with: Any = pool_answer) -> Check:
    return Check(name, title, SCRIPT, cases, compare_with)


EXERCISE = Details(
    checks=(
        _check("new-pool", "a new pool is all free; sizes below 1 are refused", new_pools),
        _check("allocate", "distinct blocks, or OutOfBlocks and nothing changed", allocations),
        _check("holders", "a block is free again when its last holder is gone", holders),
        _check("order", "front, back and middle of the free list", order),
        _check("ids", "ids outside the pool are refused", outside),
        _check("random", "random calls, everything looked at after each", random_scripts),
        _check("own-lists", "callers may change the lists that they got", spoiled,
               own_lists),
        Check("first-ids", "a new pool hands out 0, 1, 2 ...", SCRIPT, first_ids, ids_in_order,
              kind="policy"),
        *engine_checks.control_plane_checks(),
        engine_checks.tiny_check(spare=True),
        engine_checks.smollm2_check(),
    ),
    hints=(
        "One block can stand in several block tables. What has to be remembered for each block so "
        "that the pool knows when it is really free, and what happens in a second free?",
        "A block is in the free list exactly when its reference count is 0. Every method keeps "
        "that: look at both before you change either, and raise before you change anything. "
        "The free list needs both ends and its middle: which container of the standard library "
        "removes any key in constant time and keeps an order? (A list will do here.)",
        "keep a count per block id and an ordered free list of ids\n"
        "allocate: refuse (negative, too many); move ids from the front; each count becomes 1\n"
        "share: check the id; was the count 0, then remove it from the list; count up\n"
        "free: check the id; count 0 is an error; count down; now 0: put it at the end asked for\n"
        "return new lists, never the one you work with",
    ),
    mistakes=tuple(
        Mistake(name, {"BlockPool": f"judge.mistakes.paged_kv:{kind}"})
        for name, kind in (
            ("a second free goes unnoticed", "SilentDoubleFree"),
            ("a second free goes unnoticed", "BlockListedTwice"),
            ("a second free goes unnoticed", "CountBelowZero"),
            ("to_front is ignored, every block joins at the back", "AlwaysBack"),
            ("to_front is ignored, every block joins at the front", "AlwaysFront"),
            ("to_front means the wrong end", "EndsSwapped"),
            ("share leaves the block in the free list", "ShareKeepsFree"),
            ("share leaves the block in the free list", "ShareKeepsListed"),
            ("share of a free block does not count its holder", "ShareForgetsCount"),
            ("free gives the block back while others hold it", "FreeIgnoresHolders"),
            ("a block in several tables never becomes free", "SharedNeverFree"),
            ("allocate takes blocks before it raises", "TakesThenRaises"),
            ("allocate takes blocks before it raises", "TakesUncounted"),
            ("allocate takes blocks before it raises", "TakesUncountedKeys"),
            ("allocate takes blocks before it raises", "TakesUncountedQuietly"),
            ("allocate hands out fewer blocks than asked for", "FewerBlocks"),
            ("the last free block is never handed out", "LastBlockKept"),
            ("allocate takes from the back of the free list", "TakesFromBack"),
            ("the free list is kept in the order of ids", "SortedFreeList"),
            ("a negative id counts from the end", "NegativeIds"),
            ("a negative count is accepted", "NegativeCount"),
            ("the pool's own list is given away", "GivesListAway"),
            ("OutOfBlocks is not raised, Python's own error comes through", "PythonError"),
            ("OutOfBlocks is not raised, Python's own error comes through", "PythonErrorUncounted"),
        )
    ),
)  # fmt: skip
