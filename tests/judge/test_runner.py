"""How verdicts come about: seeds, statuses, names of mistakes, what was not run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from judge.api import Case, CheckResult, ExerciseResult, Mistake
from judge.diagnosis import Evidence, fitting_mistake
from judge.reference import JudgeFault
from judge.report import counts
from judge.runner import Grader, Options, reference_source
from tests.judge.toy import CHECK, EXERCISE, ODD, TOY, grade

RIGHT = "def half(x): return x // 2"


def test_right_code_passes(tmp_path: Path) -> None:
    assert grade(tmp_path, RIGHT).status == "passed"


def test_the_stub_error_means_not_started(tmp_path: Path) -> None:
    code = (
        "from mini_engine.interfaces import ExerciseNotStarted\n"
        "def half(x): raise ExerciseNotStarted('half')"
    )
    result = grade(tmp_path, code)
    assert result.status == "not started"
    assert result.first_failure is None


def test_another_error_of_that_name_is_not_enough_to_pass(tmp_path: Path) -> None:
    code = "class ExerciseNotStarted(Exception): pass\ndef half(x): raise ExerciseNotStarted"
    assert grade(tmp_path, code).status != "passed"


def test_one_exercise_may_be_half_written(tmp_path: Path) -> None:
    code = (
        "from mini_engine.interfaces import ExerciseNotStarted\n"
        "def half(x):\n    if x % 2: raise ExerciseNotStarted('half, odd')\n    return x // 2"
    )
    result = grade(tmp_path, code, CHECK, ODD)
    assert [r.status for r in result.results] == ["passed", "not started"]
    assert result.status == "not started"


def test_the_seed_decides_the_cases_whatever_else_runs() -> None:
    def labels(seed: int, only: str | None) -> list[str]:
        grader = Grader(TOY, reference_source(TOY), Options(seed=seed, only=only))
        return [case.label for case in grader.cases(ODD)]

    assert labels(1, None) == labels(1, "odd")
    assert labels(1, None) != labels(2, None)


def test_only_keeps_the_checks_that_fit() -> None:
    grader = Grader(TOY, reference_source(TOY), Options(seed=1, only="od"))
    assert [check.name for check in grader.selected()] == ["odd"]
    with pytest.raises(ValueError, match="it has: even, odd"):
        Grader(TOY, reference_source(TOY), Options(seed=1, only="none such")).selected()


def test_a_skipped_check_is_not_green(tmp_path: Path) -> None:
    needy = replace(ODD, needs=("smollm2",))
    options = {"missing": {"smollm2": "no model here"}}
    result = grade(tmp_path, RIGHT, CHECK, needy, **options)
    assert [r.status for r in result.results] == ["passed", "skipped"]
    assert result.status == "skipped"
    assert counts(result.results) == "1 of 1 checks passed; 1 not run"


def test_all_skipped_is_not_passed() -> None:
    results = [CheckResult(CHECK, "skipped")]
    assert ExerciseResult(TOY, "", 1, results).status == "skipped"
    assert ExerciseResult(TOY, "", 1, []).status == "skipped"


def test_last_checks_wait_for_the_others(tmp_path: Path) -> None:
    result = grade(tmp_path, "def half(x): return x", CHECK, replace(ODD, last=True))
    assert [r.status for r in result.results] == ["wrong", "not run"]


def test_policy_is_reported_and_fails_nothing(tmp_path: Path) -> None:
    code = "def half(x): return x // 2 if x % 2 == 0 else 0.5"
    policy = replace(ODD, kind="policy")
    result = grade(tmp_path, code, CHECK, policy)
    assert result.status == "passed"
    assert result.first_failure is not None
    assert result.first_failure.check is policy


def test_policy_alone_fails_nothing_either(tmp_path: Path) -> None:
    policy = replace(ODD, kind="policy")
    assert grade(tmp_path, "def half(x): return 0.5", policy).status == "passed"


def test_a_mistake_that_explains_everything_is_named(tmp_path: Path) -> None:
    result = grade(tmp_path, "def half(x): return -(-x // 2)")
    failed = result.first_failure
    assert failed is not None
    assert failed.check.name == "odd"
    assert failed.mistake == "rounded up"


def test_no_name_for_another_mistake_in_the_same_check(tmp_path: Path) -> None:
    failed = grade(tmp_path, "def half(x): return x // 2 + (x == 3)").first_failure
    assert failed is not None
    assert failed.mistake is None


def answers_of(*functions: object):
    def answer(mistake, check, case, number):
        return dict(functions)[mistake.name](case.payload["args"][0])

    return answer


def evidence(**learner: object) -> dict[str, Evidence]:
    import random

    found = {}
    for check in (CHECK, ODD):
        cases = [c for c in check.cases(random.Random(0)) if c.payload["args"][0] < 100]
        numbers = [case.payload["args"][0] for case in cases]
        got = [{"value": learner[check.name](n)} for n in numbers]
        want = [{"value": n // 2} for n in numbers]
        found[check.name] = Evidence(check, cases, want, got, want == got)
    return found


def test_two_explanations_are_no_explanation() -> None:
    seen = evidence(even=lambda n: n // 2, odd=lambda n: n // 2 + 1)
    same = lambda n: {"value": n // 2 + n % 2}  # noqa: E731
    both = [Mistake("one", {}), Mistake("two", {})]
    answers = answers_of(("one", same), ("two", same))
    assert fitting_mistake(both, seen, "odd", answers) is None
    assert fitting_mistake(both[:1], seen, "odd", answers) == "one"


def test_an_explanation_that_another_check_contradicts_is_dropped() -> None:
    seen = evidence(even=lambda n: n // 2, odd=lambda n: n // 2 + 1)
    plus_one = lambda n: {"value": n // 2 + 1}  # noqa: E731  (would be wrong on even numbers too)
    answers = answers_of(("plus one", plus_one))
    assert fitting_mistake([Mistake("plus one", {})], seen, "odd", answers) is None


def test_the_file_and_line_of_an_error_are_the_learners(tmp_path: Path) -> None:
    result = grade(tmp_path, "def half(x):\n    return inner(x)\ndef inner(x):\n    return x['a']")
    own = [frame for frame in result.results[0].frames if frame.own]
    assert [(frame.function, frame.line) for frame in own] == [("half", 2), ("inner", 4)]


def test_a_judge_that_cannot_compare_says_so(tmp_path: Path) -> None:
    def broken(case: object, expected: object, got: object) -> None:
        raise KeyError("value")

    result = grade(tmp_path, RIGHT, replace(CHECK, compare=broken))
    assert result.status == "error"
    assert "can't be compared" in result.results[0].lines[1]


def test_a_failing_reference_is_not_blamed_on_the_learner(tmp_path: Path) -> None:
    broken = replace(CHECK, cases=lambda rng: [Case("half of what?", {"function": "quarter"})])
    with pytest.raises(JudgeFault, match="the reference failed in half of what"):
        grade(tmp_path, RIGHT, broken)


def test_every_check_of_the_toy_passes_with_its_reference() -> None:
    result = Grader(TOY, reference_source(TOY), Options(seed=3)).run()
    assert result.status == "passed"
    assert len(result.results) == len(EXERCISE.checks)
