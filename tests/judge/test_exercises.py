"""Every exercise is complete: stub, marks, hints, checks, mutants, alternatives."""

from __future__ import annotations

import importlib
import inspect
import random
import re

import pytest

from judge.api import Exercise, resolve
from judge.exercises import EXERCISES, find
from judge.practice import BEGIN, END, code_hash, line_of
from judge.sandbox import ROOT
from judge.selftest import (
    LEAST_ALTERNATIVES,
    LEAST_MUTANTS,
    MUTANTS,
    alternatives,
    diagnosis_of,
)

KEYWORD = inspect.Parameter.KEYWORD_ONLY
each = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)


def region(exercise: Exercise) -> str:
    text = (ROOT / "practice" / exercise.file).read_text("utf-8")
    _, begin, rest = text.partition(BEGIN.format(id=exercise.mark))
    inner, end, _ = rest.partition(END.format(id=exercise.mark))
    assert begin, f"{exercise.file} does not mark where {exercise.id} begins"
    assert end, f"{exercise.file} does not mark where {exercise.id} ends"
    return inner


def code_lines(text: str) -> set[str]:
    """Lines of some length, without spaces, so that formatting hides nothing."""
    found = {re.sub(r"\s+", "", line) for line in text.splitlines()}
    return {line for line in found if len(line) > 12}


def reference_code(exercise: Exercise) -> str:
    parts = [resolve(f"{exercise.reference}:{symbol}") for symbol in exercise.symbols]
    return "\n".join(re.sub(r'"""(?:.|\n)*?"""', "", inspect.getsource(part)) for part in parts)


def test_ids_are_unique_and_carry_no_numbers() -> None:
    ids = [exercise.id for exercise in EXERCISES]
    assert len(set(ids)) == len(ids)
    for name in ids:
        assert re.fullmatch(r"[a-z-]+\.[a-z-]+", name), name


def test_names_of_exercises_topics_and_chapters() -> None:
    (pool,) = find("paged-kv.block-pool")
    assert pool in find("paged-kv")
    assert pool in find("ch02")
    assert {e.chapter for e in find("ch00")} == {0}
    with pytest.raises(ValueError, match=r"did you mean paged-kv\.block-pool"):
        find("paged-kv.blockpool")
    with pytest.raises(ValueError, match="there is no exercise 'ch77'"):
        find("ch77")


@each
def test_the_stub_has_every_symbol_and_only_the_exercise_error(exercise: Exercise) -> None:
    inner = region(exercise)
    for symbol in exercise.symbols:
        assert re.search(rf"^(def|class) {symbol}\b", inner, re.MULTILINE), symbol
    assert "raise ExerciseNotStarted(" in inner
    assert "return" not in re.sub(r'"""(?:.|\n)*?"""', "", inner)


@each
def test_the_stub_has_the_signatures_of_the_reference(exercise: Exercise) -> None:
    names: dict[str, object] = {"__name__": "stub"}
    source = (ROOT / "practice" / exercise.file).read_text("utf-8")
    exec(compile(source, exercise.file, "exec"), names)
    for symbol in exercise.symbols:
        reference = resolve(f"{exercise.reference}:{symbol}")
        stub = names[symbol]
        if inspect.isfunction(reference):
            pairs = [(reference, stub)]
        else:
            methods = [n for n, m in vars(stub).items() if inspect.isfunction(m)]
            pairs = [(getattr(reference, name), getattr(stub, name)) for name in methods]
        for theirs, ours in pairs:
            want, have = inspect.signature(theirs), inspect.signature(ours)
            extra = list(want.parameters)[len(have.parameters) :]  # for tests of the reference
            assert all(want.parameters[name].kind is KEYWORD for name in extra)
            assert list(have.parameters) + extra == list(want.parameters), symbol
            for name, parameter in have.parameters.items():
                assert parameter.kind == want.parameters[name].kind
                assert parameter.default == want.parameters[name].default


@each
def test_torch_free_stubs_load_no_torch(exercise: Exercise) -> None:
    if exercise.needs_torch:
        pytest.skip("a tensor exercise")
    source = (ROOT / "practice" / exercise.file).read_text("utf-8")
    assert not re.search(r"^(import|from) torch", source, re.MULTILINE)


@each
def test_three_hints_without_a_line_of_the_reference(exercise: Exercise) -> None:
    details = exercise.details()
    hints = details.hints
    assert len(hints) == 3
    assert "?" in hints[0]
    reference = code_lines(reference_code(exercise))
    for hint in (*hints, *(text for own in details.hints_for.values() for text in own)):
        assert len(hint) > 40
        for line in code_lines(hint):
            assert not any(line in other or other in line for other in reference), line


@each
def test_checks_are_named_apart_and_repeat_with_their_seed(exercise: Exercise) -> None:
    checks = exercise.details().checks
    names = [check.name for check in checks]
    assert len(set(names)) == len(names)
    for check in checks:
        assert callable(resolve(check.execute)) or exercise.needs_torch
        first = [c.label for c in check.cases(random.Random("a"))]
        assert first == [c.label for c in check.cases(random.Random("a"))]
        assert first


@each
def test_random_cases_differ_from_seed_to_seed(exercise: Exercise) -> None:
    def payloads(seed: str) -> str:
        checks = exercise.details().checks
        return repr([[c.payload for c in check.cases(random.Random(seed))] for check in checks])

    assert payloads("a") != payloads("b")


@each
def test_known_mistakes_can_be_loaded(exercise: Exercise) -> None:
    for mistake in exercise.details().mistakes:
        for symbol, place in mistake.parts.items():
            assert symbol in exercise.symbols
            importlib.import_module(place.partition(":")[0])
            resolve(place)


@each
def test_enough_mutants_and_alternatives_that_name_known_mistakes(exercise: Exercise) -> None:
    mutants = sorted((MUTANTS / exercise.id).glob("*.py"))
    assert len(mutants) >= LEAST_MUTANTS
    assert len(alternatives(exercise)) >= LEAST_ALTERNATIVES
    details = exercise.details()
    known = {mistake.name for mistake in details.mistakes}
    for check in details.checks:
        known |= {
            c.notes["if_timeout"] for c in check.cases(random.Random(0)) if "if_timeout" in c.notes
        }
    for file in mutants:
        name = diagnosis_of(file)
        assert name is None or name in known, file


def test_the_hash_follows_the_region_only(tmp_path) -> None:
    first, second = find("ch00")
    file = tmp_path / "life.py"
    text = (ROOT / "practice/life.py").read_text("utf-8")
    file.write_text(text, "utf-8")
    before = code_hash(first, file), code_hash(second, file)
    file.write_text(text.replace('raise ExerciseNotStarted("goodput")', "return 1.0"), "utf-8")
    after = code_hash(first, file), code_hash(second, file)
    assert before[0] == after[0]
    assert before[1] != after[1]
    assert line_of(first, file) == 1 + text[: text.index("def prefill_chunks")].count("\n")


def test_a_mutant_without_a_header_is_an_error(tmp_path) -> None:
    file = tmp_path / "m.py"
    file.write_text("x = 1\n", "utf-8")
    with pytest.raises(ValueError, match="must start with"):
        diagnosis_of(file)
