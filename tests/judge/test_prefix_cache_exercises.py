"""The scripts of prefix-cache.cache: what its mistakes stand on is right, and growth is seen."""

from __future__ import annotations

import random
from typing import Any

import pytest

from judge import compare, wire
from judge.api import Context, resolve
from judge.exercises import find
from judge.exercises.prefix_cache_run import room_of_names
from judge.exercises.prefix_cache_script import drive, footprint, serve_many
from judge.exercises.prefix_cache_scripts import Played
from judge.mistakes.prefix_cache import PlainCache, RenamingCache
from judge.wire import Raised
from mini_engine.control.block_pool import BlockPool
from mini_engine.control.prefix_cache import PrefixCache

(CACHE,) = find("prefix-cache.cache")
(NAMES,) = find("prefix-cache.names")
RUNS = {"drive": drive, "serve_many": serve_many}
SCRIPTED = [c for c in CACHE.details().checks if c.execute.partition(":")[2] in RUNS]


@pytest.mark.parametrize("kind", [PlainCache, RenamingCache])
@pytest.mark.parametrize("check", SCRIPTED, ids=lambda check: check.name)
def test_the_caches_that_mistakes_stand_on_are_right(check: Any, kind: type) -> None:
    run = RUNS[check.execute.partition(":")[2]]
    for case in check.cases(random.Random(f"{check.name} 3")):
        expected, got = (
            check.normalize(
                case, wire.copy(run({"PrefixCache": part}, wire.copy(case.payload), Context()))
            )
            for part in (PrefixCache, kind)
        )
        assert check.compare(case, expected, got) is None, case.label


def test_a_random_script_meets_what_the_engine_does() -> None:
    calls = [call for seed in range(40) for call in Played(random.Random(seed), 14).calls]
    names = {call[0] for call in calls}
    assert {"lookup", "admit", "grow", "release", "take_back_names", "reset", "output"} <= names
    assert any(call[0] == "take_back_names" and len(call) == 2 for call in calls)
    assert any(call[:1] == ["request"] and call[3] is not None for call in calls)


def test_random_scripts_hit_reuse_and_share() -> None:
    hits = shared = reused = 0
    for seed in range(40):
        payload = Played(random.Random(seed), 14).case("").payload
        answers = drive({"PrefixCache": PrefixCache}, payload, Context())
        handed_out: set[int] = set()
        for call, answer in zip(payload["calls"], answers[1:], strict=True):
            hits += call[0] == "lookup" and bool(answer["value"])
            state = answer["state"]
            if state is not None:
                shared += max(state["counts"]) > 1
                reused += call[0] == "grow" and len(handed_out) == payload["num_blocks"]
                handed_out |= {b for table in state["tables"].values() for b in table}
    assert hits > 50
    assert shared > 50
    assert reused > 50


def test_the_footprint_sees_what_the_cache_keeps() -> None:
    cache: Any = PlainCache(BlockPool(4), 4)
    before = footprint(cache)
    cache.kept = [(number, str(number)) for number in range(1000)]
    assert footprint(cache) > before + 50_000


def test_an_error_ends_the_comparison_but_not_out_of_blocks() -> None:
    class Raises(PlainCache):
        def lookup(self, request: Any) -> list[int]:
            raise KeyError("lost")

    check = next(check for check in SCRIPTED if check.name == "tables")
    cases = check.cases(random.Random(0))
    lack = next(case for case in cases if case.label.startswith("too few"))
    right = drive({"PrefixCache": PrefixCache}, lack.payload, Context())
    assert check.normalize is not None
    assert len(check.normalize(lack, right)) == len(right)
    assert compare.find_raised(right, "OutOfBlocks") is not None
    wrong = check.normalize(lack, drive({"PrefixCache": Raises}, lack.payload, Context()))
    assert len(wrong) < len(right)
    found = check.compare(lack, check.normalize(lack, right), wrong)
    assert found is not None
    assert found.status == "error"


def test_an_exception_of_block_names_is_told_without_the_numbers_of_the_judge() -> None:
    check = next(check for check in NAMES.details().checks if check.name == "lengths")
    case = check.cases(random.Random(0))[0]

    def answer(names: Any) -> Any:
        return [{"names": names, "changed": False}]

    overflow, refusal = Raised(("OverflowError",), "too big"), Raised(("ValueError",), "0")
    raises = check.compare(case, answer([3]), answer(overflow))
    returns = check.compare(case, answer(refusal), answer([3, 4, 5]))
    nothing = check.compare(case, answer([3, 4]), answer(None))
    assert raises is not None
    assert raises.lines[-1] == "expected a list of 1 name, but it raised OverflowError: too big"
    assert raises.status == "error"
    assert returns is not None
    assert returns.lines[-1] == "expected ValueError, but it returned a list of 3 names"
    assert nothing is not None
    assert nothing.lines[-2] == "expected a list of 2 names, got a NoneType: None"


@pytest.mark.parametrize(("name", "wrong"), [("nested", True), ("four_bytes", False)])
def test_a_name_must_not_grow_with_its_position(name: str, wrong: bool) -> None:
    check = next(check for check in NAMES.details().checks if check.name == "size")
    part = resolve(f"judge.mistakes.prefix_cache_names:{name}")
    (case,) = check.cases(random.Random(1))
    answer = room_of_names({"block_names": part}, case.payload, Context())
    assert check.normalize is not None
    assert check.normalize(case, answer) == {"names": 500, "grows": wrong}
