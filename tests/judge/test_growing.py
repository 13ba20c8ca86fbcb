"""Several exercises, one class: marks, progress, repeats, reset, solution, your engine."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from judge import practice
from judge.api import Exercise
from judge.commands import mine, show
from judge.commands.reset import reset
from judge.commands.solution import solution
from judge.exercises import EXERCISES, find, sharing
from judge.growing import to_repeat, within_reach
from judge.practice import Folder
from judge.progress import EDITED, Progress
from judge.report import Reporter
from judge.sandbox import ROOT

SCHEDULER = find("scheduler")
(CONTINUOUS, CHUNKED, PREEMPT, ABORT, PRIORITY) = SCHEDULER
(POOL,) = find("paged-kv.block-pool")
STUB = (ROOT / "practice" / "scheduler.py").read_text("utf-8")
OTHERS = [e for e in EXERCISES if e not in SCHEDULER]


class Space:
    """A learner's scheduler.py, and what is recorded of it."""

    def __init__(self, root: Path) -> None:
        self.folder = Folder(root / "work" / "practice", own=True)
        self.folder.path.mkdir(parents=True)
        self.file = self.folder.path / "scheduler.py"
        self.file.write_text(STUB, encoding="utf-8")
        self.progress = Progress(self.folder)

    def passed(self, *exercises: Exercise) -> None:
        for exercise in exercises:
            entry = {"status": "passed", "hash": self.progress.code(exercise)}
            self.progress.entries[exercise.id] = entry

    def edit(self) -> None:
        mark = practice.END.format(id="scheduler")
        text = self.file.read_text("utf-8")
        self.file.write_text(text.replace(mark, f"# a thought\n\n{mark}"), encoding="utf-8")


@pytest.fixture
def space(tmp_path: Path) -> Space:
    return Space(tmp_path)


def test_one_pair_of_marks_serves_all_five() -> None:
    assert [e.mark for e in SCHEDULER] == ["scheduler"] * 5
    assert sharing(CHUNKED) == SCHEDULER
    assert sharing(POOL) == [POOL]
    regions = {practice.region(exercise, STUB) for exercise in SCHEDULER}
    assert len(regions) == 1
    assert None not in regions


def test_an_edit_concerns_all_that_had_passed(space: Space) -> None:
    space.passed(CONTINUOUS, CHUNKED)
    assert space.progress.status(CONTINUOUS) == "passed"
    space.edit()
    assert [space.progress.status(e) for e in SCHEDULER[:3]] == [EDITED, EDITED, "not tried"]


def test_the_next_one_is_that_which_never_passed(space: Space) -> None:
    space.passed(*OTHERS, CONTINUOUS, CHUNKED)
    space.edit()
    assert show.next_exercise(space.progress) is PREEMPT
    space.passed(PREEMPT, ABORT, PRIORITY)
    assert show.next_exercise(space.progress) is CONTINUOUS
    space.passed(*SCHEDULER)
    with pytest.raises(ValueError, match="every exercise has passed"):
        show.next_exercise(space.progress)


def test_what_passed_before_is_graded_once_more(space: Space) -> None:
    space.passed(POOL, CONTINUOUS, CHUNKED)
    space.edit()
    assert to_repeat(space.progress, [PREEMPT]) == [CONTINUOUS, CHUNKED]
    assert to_repeat(space.progress, SCHEDULER) == []
    assert to_repeat(space.progress, [POOL]) == []


def test_a_save_grades_no_further_than_the_next_one(space: Space) -> None:
    assert within_reach(space.progress, [POOL, *SCHEDULER]) == [POOL, CONTINUOUS]
    space.passed(CONTINUOUS, CHUNKED)
    space.edit()
    assert within_reach(space.progress, SCHEDULER) == SCHEDULER[:3]
    assert within_reach(space.progress, [PRIORITY]) == [PRIORITY], "it was asked for by name"


def test_reset_says_that_all_five_start_again(space: Space) -> None:
    space.edit()
    said = io.StringIO()
    assert reset(ABORT, space.folder, Reporter(said), ROOT / "practice") == 0
    assert space.file.read_text("utf-8") == STUB
    assert "the same code serves scheduler.continuous, scheduler.chunked" in said.getvalue()


def test_a_solution_shown_is_shown_for_all_five(space: Space) -> None:
    said = io.StringIO()
    assert solution(CHUNKED, space.progress, Reporter(said), sure=True) == 0
    assert "class Scheduler:" in said.getvalue()
    assert "finished code of scheduler.continuous" in said.getvalue()
    assert all(space.progress.solution_shown(e) for e in SCHEDULER)


def test_your_engine_waits_for_four_of_them(space: Space) -> None:
    def scheduler() -> mine.Whose:
        return next(w for w in mine.whose(space.progress) if w.row.slot == "scheduler")

    assert (scheduler().passed, scheduler().exercise) == (False, CONTINUOUS)
    space.passed(CONTINUOUS, CHUNKED, PREEMPT)
    assert (scheduler().passed, scheduler().exercise) == (False, ABORT)
    space.passed(ABORT)
    assert (scheduler().passed, scheduler().exercise) == (True, ABORT)
    space.edit()
    assert not scheduler().passed
