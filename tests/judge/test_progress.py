"""The record of what passed: shared by several judges, and only about code that was graded."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from judge.api import Check, CheckResult, ExerciseResult
from judge.exercises import EXERCISES, find
from judge.practice import Folder
from judge.progress import Progress

(CHUNKS,) = find("life.prefill-chunks")
(METRICS,) = find("life.latency-metrics")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / "practice").mkdir()
    (tmp_path / "practice" / "life.py").write_text("first\n", encoding="utf-8")
    return Folder(tmp_path / "practice", own=True)


def passed() -> ExerciseResult:
    check = Check("all", "all of it", "", lambda rng: [], lambda *answers: None)
    return ExerciseResult(CHUNKS, "life.py", 1, [CheckResult(check, "passed")])


def test_two_judges_at_once_keep_what_the_other_learned(folder: Folder) -> None:
    watching, asked = Progress(folder), Progress(folder)
    asked.next_hint(METRICS)
    asked.next_hint(CHUNKS)
    asked.save()
    watching.record(passed(), watching.code(CHUNKS))
    watching.save()
    found = Progress(folder)
    assert found.hints_shown(METRICS) == 1
    assert found.hints_shown(CHUNKS) == 1
    assert found.status(CHUNKS) == "passed"


def test_many_judges_that_save_at_the_same_moment(folder: Folder) -> None:
    records = [Progress(folder) for _ in range(4 * len(EXERCISES))]

    def learn(number: int) -> None:
        records[number].show_solution(EXERCISES[number % len(EXERCISES)])
        records[number].save()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(learn, range(len(records))))
    found = Progress(folder)
    assert [found.solution_shown(e) is None for e in EXERCISES] == [False] * len(EXERCISES)
    assert sorted(path.name for path in folder.records.iterdir()) == ["practice", "progress.json"]


def test_code_that_was_saved_during_the_run_has_not_passed(folder: Folder) -> None:
    progress = Progress(folder)
    graded = progress.code(CHUNKS)
    (folder.path / "life.py").write_text("second\n", encoding="utf-8")
    progress.record(passed(), graded)
    progress.save()
    assert progress.status(CHUNKS) == "not tried"
    assert "saved during the run" in str(progress.note)


def test_a_record_damaged_meanwhile_is_replaced_by_what_is_known(folder: Folder) -> None:
    progress = Progress(folder)
    progress.next_hint(CHUNKS)
    progress.path.write_text("{", encoding="utf-8")
    progress.save()
    assert json.loads(progress.path.read_text("utf-8"))["exercises"][CHUNKS.id]["hints"] == 1
