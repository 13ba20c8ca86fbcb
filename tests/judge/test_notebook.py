"""What a chapter shows: the same in every run, in words, with the learner's predictions kept."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path

import pytest

from judge import notebook, practice
from judge.api import CheckResult, ExerciseResult, Schedules
from judge.exercises import find
from judge.runner import Grader, Options, learner_source
from judge.sandbox import ROOT
from judge.schedule_table import BLANK
from tests.judge.toy import CHECK, ODD, TOY, grade


def test_a_verdict_in_html_is_stable_and_in_words(tmp_path: Path) -> None:
    shown = [
        notebook.verdict_html(grade(tmp_path, "def half(x): return -(-x // 2)")) for _ in range(2)
    ]
    assert shown[0] == shown[1]
    for words in ("<caption", 'scope="col"', "FAIL", "PASS", "looks like: rounded up"):
        assert words in shown[0]
    assert str(tmp_path) not in shown[0]
    assert not re.search(r"\d\.\d+ s", shown[0])


@pytest.mark.parametrize(
    ("mutant", "check", "words"),
    [
        ("pops_from_the_end.py", "engine-schedule", "expected P 12 hit 4, yours P 15"),
        ("free_drops_all_holders.py", "engine", "yours: stopped by an error"),
    ],
)
def test_a_failure_inside_the_engine_shows_both_schedules(
    mutant: str, check: str, words: str
) -> None:
    (exercise,) = find("paged-kv.block-pool")
    source = learner_source(exercise, ROOT / "tests/mutants/paged-kv.block-pool" / mutant)
    result = Grader(exercise, source, Options(seed=0, only=check)).run()
    shown = notebook.verdict_html(result)
    assert words in shown
    assert "<figcaption" in shown
    assert result.first_failure is not None
    assert result.first_failure.schedules is not None
    assert html.escape(result.first_failure.schedules.lines[0]) not in shown  # drawn, not as text


def test_a_difference_of_policy_reads_as_none_of_the_learners_business(tmp_path: Path) -> None:
    policy = replace(ODD, kind="policy", follows="the other half")
    result = grade(tmp_path, "def half(x): return -(-x // 2)", CHECK, policy)
    assert result.status == "passed"
    shown = notebook.verdict_html(result)
    assert "your part is right; here it differs from the other half, which is allowed:" in shown
    assert "half(1)" in shown
    for words in ("FAIL", "hint", "looks like"):
        assert words not in shown


def test_a_trace_of_an_impossible_form_is_shown_as_text() -> None:
    (exercise,) = find("paged-kv.block-pool")
    lines = ("schedules around step 0",)
    for odd in ([7], [{"step": 0}], [{**BLANK, "running": [7]}], [{**BLANK, "finished": "all"}]):
        failed = CheckResult(
            exercise.details().checks[0], "wrong", schedules=Schedules([], odd, 0, lines)
        )
        assert lines[0] in notebook.verdict_html(ExerciseResult(exercise, "", 0, [failed]))


def test_learner_text_is_escaped(tmp_path: Path) -> None:
    shown = notebook.verdict_html(
        grade(tmp_path, "def half(x): return '<script>alert(1)</script>'")
    )
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_grade_shows_a_table_and_returns_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(notebook, "_display", shown.append)
    stubs = practice.Folder(practice.ROOT / "practice", own=False)
    monkeypatch.setattr(practice, "folder", lambda: stubs)
    assert notebook.grade("life.prefill-chunks") is None
    assert len(shown) == 1
    assert "NOT STARTED" in shown[0]
    assert "practice/life.py" in shown[0]
    with pytest.raises(ValueError, match="give tiny, smollm2 or the folder"):
        notebook.grade("life.prefill-chunks", model="large")


@pytest.fixture
def space(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    (tmp_path / "practice").mkdir()
    own = practice.Folder(tmp_path / "practice", own=True)
    monkeypatch.setattr(practice, "folder", lambda: own)
    return tmp_path


def test_predictions_are_kept_and_shown_beside_what_happened(
    space: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(notebook, "_display", shown.append)
    assert notebook.store_prediction("ch00.steps", "How many steps?", "3 & more") is None
    notebook.predictions({"ch00.steps": ("steps", 4), "ch00.other": ("other", "x")})
    assert "3 &amp; more" in shown[0]
    assert "no prediction" in shown[0]


def test_predict_asks_and_stores_what_is_chosen(
    space: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ipywidgets")
    shown: list[str] = []
    monkeypatch.setattr(notebook, "_display", shown.append)
    before = notebook.predict("ch00.who", "Who waits?", ["A", "B"])
    before.value = "B"
    assert notebook.stored_predictions()["ch00.who"]["answer"] == "B"
    number = notebook.predict("ch00.n", "How many?", unit="tokens")
    number.value = "17"
    assert notebook.stored_predictions()["ch00.n"]["answer"] == "17"
    assert "Who waits?" in shown[0]
    assert "A / B" in shown[0]
    assert repr(notebook.predict("ch00.who", "Who waits?", ["A", "B"])) == repr(
        notebook.predict("ch00.who", "Who waits?", ["A", "B"])
    )


def test_a_prediction_that_cannot_be_kept_fails_nothing(space: Path) -> None:
    (space / "predictions.json").write_text("[", encoding="utf-8")
    assert notebook.store_prediction("a", "b", "c") is not None
    notebook.predictions({"a": ("question", 1)})


def test_a_half_written_exercise_is_shown_as_such(tmp_path: Path) -> None:
    file = tmp_path / TOY.file
    file.write_text("half = None\n", encoding="utf-8")
    result = Grader(TOY, learner_source(TOY, file), Options(seed=1)).run()
    assert "ERROR" in notebook.verdict_html(result)
