"""The learner's copies: made once, never overwritten, brought up to date while untouched."""

from __future__ import annotations

from pathlib import Path

import learner_space


def test_the_space_holds_copies_and_the_versions_they_came_from(published: Path) -> None:
    learner_space.copy_learner_space(published)
    files = {
        str(p.relative_to(published / "work")) for p in published.glob("work/**/*") if p.is_file()
    }
    names = {"chapters/00_life.ipynb", "practice/life.py", "practice/judge.py"}
    assert files == names | {f".published/{name}" for name in names}
    assert learner_space.copy_learner_space(published) == []


def test_a_learners_line_is_never_lost(published: Path) -> None:
    learner_space.copy_learner_space(published)
    mine = published / "work/practice/life.py"
    mine.write_text("my solution\n")
    (published / "practice/life.py").write_text("second version\n")
    line, how = learner_space.copy_learner_space(published)
    assert "yours are kept" in line
    assert "--update" in how
    assert "practice/life.py" in line
    assert mine.read_text() == "my solution\n"
    base = published / "work/.published/practice/life.py"
    assert base.read_text() == "practice/life.py, first version\n", "the base of a later merge"


def test_untouched_copies_follow_what_is_published(published: Path) -> None:
    learner_space.copy_learner_space(published)
    (published / "practice/judge.py").write_text("second version\n")
    learner_space.copy_learner_space(published)
    for folder in ("work", "work/.published"):
        assert (published / folder / "practice/judge.py").read_text() == "second version\n"


def test_a_deleted_copy_comes_back_as_published(published: Path) -> None:
    learner_space.copy_learner_space(published)
    (published / "work/practice/life.py").unlink()
    learner_space.copy_learner_space(published)
    assert (published / "work/practice/life.py").read_text() == "practice/life.py, first version\n"


def test_a_file_of_the_learners_own_making_is_kept(published: Path) -> None:
    mine = published / "work/practice/life.py"
    mine.parent.mkdir(parents=True)
    mine.write_text("written before make lab\n")
    learner_space.copy_learner_space(published)
    assert mine.read_text() == "written before make lab\n"
