"""Checks with the shadow model: no torch for a pass, a closer look with torch for a failure."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from judge.api import Check
from judge.exercises import EXERCISES, find
from judge.runner import NOT_SEEN, Grader, Options, learner_source, reference_source
from tests.judge.toy import CHECK, ODD, TOY, grade

SHADOWED = [e for e in EXERCISES if any(c.closer for c in e.details().checks)]
LATE_SLOTS = (
    "def slot_mapping(block_table, start, num_tokens, block_size):\n"
    "    slots = [block_table[p // block_size] * block_size + p % block_size\n"
    "             for p in range(start, start + num_tokens)]\n"
    "    return slots if start < 12 else slots[::-1]\n"
)


def names(model: tuple[str, ...], exercise_id: str, **options: object) -> list[str]:
    (exercise,) = find(exercise_id)
    grader = Grader(exercise, reference_source(exercise), Options(seed=1, models=model, **options))
    return [check.name for check in grader.selected()]


def test_every_part_without_torch_that_decides_what_is_read_has_such_a_check() -> None:
    slots = ("block_pool", "prefix_cache", "scheduler", "build_batch")
    assert {e.id for e in EXERCISES if e.slot in slots and not e.needs_torch} == {
        *(e.id for e in SHADOWED), "scheduler.priority",
    }  # fmt: skip


@pytest.mark.parametrize("exercise", SHADOWED, ids=lambda exercise: exercise.id)
def test_their_workloads_are_hard_enough(exercise) -> None:
    (check,) = (c for c in exercise.details().checks if c.closer)
    grader = Grader(exercise, reference_source(exercise), Options(seed=0))
    cases = grader.cases(check)
    reference = grader._reference(torch=False)
    trace = [r for answer in reference.answers(check, cases) for r in answer["trace"]]
    assert len(cases) >= 8
    assert any(hit for record in trace for hit in record["cached"].values())
    if exercise.id not in ("scheduler.continuous", "scheduler.chunked"):
        assert any(record["preempted"] for record in trace)


def test_a_pass_starts_no_process_with_torch() -> None:
    (exercise,) = find("paged-kv.slot-mapping")
    grader = Grader(exercise, reference_source(exercise), Options(seed=1, models=("tiny",)))
    assert grader.run().status == "passed"
    assert set(grader.references) == set(grader.learners) == {False}


def test_a_failure_shows_logits_and_layers_all_the_same(tmp_path: Path) -> None:
    (exercise,) = find("paged-kv.slot-mapping")
    file = tmp_path / "paged_kv.py"
    file.write_text(LATE_SLOTS, encoding="utf-8")
    options = Options(seed=1, models=("tiny",), only="engine")
    (found,) = Grader(exercise, learner_source(exercise, file), options).run().results
    said = "\n".join(found.lines)
    assert found.check.name == "engine"
    for words in ("a tiny random llama model, 8 requests", "best logits, yours:", "margin ",
                  "layer 0: K and V agree as computed, but in the cache K differs first",
                  "the slot holds something else"):  # fmt: skip
        assert words in said, said


def test_the_spare_check_runs_where_no_other_has_a_model() -> None:
    pool, chunked = "paged-kv.block-pool", "scheduler.chunked"
    assert "engine-tiny" not in names(("tiny",), pool)
    assert "engine-tiny" not in names(("tiny", "smollm2"), pool)
    assert "engine-tiny" in names(("tiny", "smollm2"), pool, missing={"smollm2": "it is not here"})
    assert "engine-tiny" in names(("tiny", "smollm2"), chunked)  # which has none on SmolLM2
    assert "engine-tiny" not in names(("tiny",), chunked)
    assert names(("tiny",), pool, only="engine-tiny") == ["engine-tiny"]


def with_a_closer(check: Check) -> Check:
    return replace(CHECK, closer=lambda case: (check, replace(case, label=f"closer: {case.label}")))


def test_what_the_closer_look_finds_is_said(tmp_path: Path) -> None:
    lines = grade(tmp_path, "def half(x): return x", with_a_closer(CHECK)).results[0].lines
    assert lines[0].startswith("closer: half(2)")


def test_a_closer_look_that_finds_nothing_changes_no_verdict(tmp_path: Path) -> None:
    blind = replace(CHECK, compare=lambda case, expected, got: None)
    found = grade(tmp_path, "def half(x): return x", with_a_closer(blind)).results[0]
    assert found.status == "wrong"
    assert found.lines[-1] == NOT_SEEN


def test_a_closer_look_that_dies_changes_no_verdict(tmp_path: Path) -> None:
    code = "import os\ndef half(x): return x if x < 9 else os._exit(3)"
    deadly = replace(CHECK, execute="tests.judge.test_shadow_checks:deadly")
    found = grade(tmp_path, code, with_a_closer(deadly)).results[0]
    assert found.status == "wrong"
    assert found.lines[0].startswith("half(2)")


def deadly(parts, payload, context):
    """In the learner's process it ends it."""
    return {"value": parts["half"](10) if parts["half"](2) == 2 else 1}


def test_answers_of_another_check_are_looked_at_again(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    code = f"def half(x):\n    open({str(calls)!r}, 'a').write('x')\n    return x // 2"
    policy = replace(CHECK, name="again", kind="policy", answers_of=CHECK.name)
    result = grade(tmp_path, code, CHECK, policy, ODD)
    assert [found.status for found in result.results] == ["passed"] * 3
    cases = len(CHECK.cases(random.Random(0))) + len(ODD.cases(random.Random(0)))
    assert len(calls.read_text()) == cases


def test_alone_it_has_the_cases_of_the_other() -> None:
    policy = replace(CHECK, name="again", kind="policy", answers_of=CHECK.name)
    grader = Grader(TOY, reference_source(TOY), Options(seed=4))
    assert grader.cases(policy) == grader.cases(CHECK)
