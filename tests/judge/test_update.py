"""`--update`: a new release comes in, and not one of the learner's lines is lost."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path

import learner_space
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge import merge as merging
from judge.commands import update as command
from judge.practice import Folder
from judge.report import Reporter
from tests.judge.conftest import Checkout

FIRST = "import a\n\n\ndef one():\n    raise NotStarted\n\n\ndef two():\n    raise NotStarted\n"
NAME = "practice/life.py"
NOTEBOOK = "chapters/00.ipynb"


class Course:
    """A published course, a learner's copies of it, and what `--update` says."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.publish(FIRST)
        self.publish('{"cells": [1]}', NOTEBOOK)
        learner_space.copy_learner_space(root)

    def publish(self, text: str, name: str = NAME) -> None:
        path = self.root / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)

    def write(self, text: str, name: str = NAME) -> None:
        (self.root / "work" / name).write_text(text)

    def mine(self, name: str = NAME) -> str:
        return (self.root / "work" / name).read_text()

    def record(self, name: str = NAME) -> str:
        return (self.root / "work/.published" / name).read_text()

    def update(self) -> tuple[int, str]:
        said = io.StringIO()
        folder = Folder(self.root / "work" / "practice", own=True)
        return command.update(self.root, folder, Reporter(said)), said.getvalue()

    def backups(self) -> list[str]:
        return [p.read_text() for p in sorted(self.root.glob("work/backups/*/*/*"))]


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return Course(tmp_path)


SOLVED = FIRST.replace("def one():\n    raise NotStarted", "def one():\n    return 1  # mine")
SECOND = FIRST.replace("import a\n", "import a\nimport b\n") + "\n\ndef three():\n    pass\n"
CLASH = SECOND.replace("def one():\n    raise NotStarted", "def one():\n    raise Changed")


def test_an_untouched_copy_follows(course: Course) -> None:
    course.publish(SECOND)
    course.publish('{"cells": [2]}', NOTEBOOK)
    code, said = course.update()
    assert code == 0
    assert (course.mine(), course.mine(NOTEBOOK)) == (SECOND, '{"cells": [2]}')
    assert "as you had not changed them" in said
    assert course.backups() == []
    assert course.update() == (0, "up to date already: 2 files\nwork/ is up to date\n")


def test_a_changed_file_is_merged_and_kept_as_it_was(course: Course) -> None:
    course.write(SOLVED)
    course.publish(SECOND)
    code, said = course.update()
    assert code == 0
    expected = SECOND.replace(
        "def one():\n    raise NotStarted", "def one():\n    return 1  # mine"
    )
    assert course.mine() == expected
    assert course.record() == SECOND, "the base of the next merge"
    assert course.backups() == [SOLVED]
    assert "merged with your changes" in said
    assert not list(course.root.glob("work/practice/*.new"))


def test_where_both_changed_a_place_the_learners_lines_stay(course: Course) -> None:
    course.write(SOLVED)
    course.publish(CLASH)
    code, said = course.update()
    assert code == 1
    assert "return 1  # mine" in course.mine()
    assert "raise Changed" not in course.mine()
    assert "<<<<" not in course.mine()
    assert "def three()" in course.mine(), "what only the release changed comes in"
    assert course.mine(NAME + ".new") == CLASH
    assert course.backups() == [SOLVED]
    assert "1 place was changed by you and by the release" in said
    before = course.mine()
    assert course.update()[0] == 1, "still to do"
    assert (course.mine(), len(course.backups())) == (before, 1)


def test_deleting_the_new_version_settles_it(course: Course) -> None:
    course.write(SOLVED)
    course.publish(CLASH)
    course.update()
    mine = course.mine()
    (course.root / "work" / f"{NAME}.new").unlink()
    code, said = course.update()
    assert code == 0
    assert "settled" in said
    assert course.mine() == mine
    course.publish(CLASH + "\n\ndef four():\n    pass\n")
    assert course.update()[0] == 0
    assert course.mine() == mine + "\n\ndef four():\n    pass\n"


def test_taking_everything_over_settles_it_too(course: Course) -> None:
    course.write(SOLVED)
    course.publish(CLASH)
    course.update()
    course.write(CLASH)
    assert course.update()[0] == 0
    assert not (course.root / "work" / f"{NAME}.new").exists()


def test_a_new_version_that_the_learner_wrote_into_is_kept(course: Course) -> None:
    course.write(SOLVED)
    course.publish(CLASH)
    course.update()
    course.write("my notes\n", NAME + ".new")
    course.publish(CLASH.replace("Changed", "ChangedAgain"))
    assert course.update()[0] == 1
    assert "ChangedAgain" in course.mine(NAME + ".new")
    assert "my notes\n" in course.backups()


def test_a_changed_notebook_is_never_merged(course: Course) -> None:
    course.write('{"cells": ["mine"]}', NOTEBOOK)
    course.publish('{"cells": [2]}', NOTEBOOK)
    code, said = course.update()
    assert code == 1
    assert course.mine(NOTEBOOK) == '{"cells": ["mine"]}'
    assert course.mine("chapters/00.new.ipynb") == '{"cells": [2]}'
    assert "notebooks are not merged" in said


def test_without_git_yours_stays_and_it_says_what_to_do(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    course.write(SOLVED)
    course.publish(SECOND)
    code, said = course.update()
    assert code == 1
    assert course.mine() == SOLVED
    assert course.mine(NAME + ".new") == SECOND
    assert "git is not installed here; install it and repeat this" in said
    monkeypatch.undo()
    assert course.update()[0] == 0
    assert "def three()" in course.mine()
    assert not (course.root / "work" / f"{NAME}.new").exists()


def test_a_file_without_a_recorded_version_is_left_alone(course: Course) -> None:
    (course.root / "work/.published" / NAME).unlink()
    course.write(SOLVED)
    course.publish(SECOND)
    assert course.update()[0] == 1
    assert course.mine() == SOLVED


def test_an_update_interrupted_at_its_worst_moment_goes_on(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    course.write(SOLVED)
    course.publish(SECOND)

    def stop(*anything: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "copy_file", stop)
    with pytest.raises(KeyboardInterrupt):
        course.update()
    monkeypatch.undo()
    merged = course.mine()
    assert course.update()[0] == 0
    assert course.mine() == merged
    assert "return 1  # mine" in merged


def test_a_merge_that_would_break_working_python_is_not_made() -> None:
    base = b"x = [\n    1,\n    2,\n]\n\n\n# a\n# b\n# c\n"
    mine = b"x = [1, 2]\n\n\n# a\n# b\n# c\n"
    new = base + b"]\n"
    assert merging.merge(base, mine, new) is None


def test_what_is_no_text_is_not_merged() -> None:
    assert merging.merge(b"a\n", b"a\0\n", b"b\n") is None


LINES = st.lists(st.sampled_from(["a", "b", "c", "d = 1", "# mine"]), max_size=12)


@given(base=LINES, mine=LINES, new=LINES)
def test_no_merge_loses_a_line(base: list[str], mine: list[str], new: list[str]) -> None:
    texts = [("\n".join(lines) + "\n").encode() for lines in (base, mine, new)]
    found = merging.merge(*texts)
    assert found is None or merging.lost_lines(texts[0], texts[1], found.text) == []


def test_a_failing_git_is_reported_and_changes_nothing(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*anything: object, **more: object) -> subprocess.CompletedProcess[bytes]:
        return subprocess.CompletedProcess([], 255, b"", b"broken")

    monkeypatch.setattr(merging.subprocess, "run", fail)
    course.write(SOLVED)
    course.publish(SECOND)
    code, said = course.update()
    assert (code, course.mine()) == (1, SOLVED)
    assert "git merge-file failed (broken)" in said


def test_the_command(checkout: Checkout) -> None:
    found = checkout.run("--update")
    assert found.returncode == 2
    assert "make lab" in found.stderr
    (checkout.root / "chapters").mkdir()
    learner_space.copy_learner_space(checkout.root)
    progress = checkout.root / "work" / "progress.json"
    progress.write_text('{"exercises": {}, "version": 1}', encoding="utf-8")
    published, mine = (checkout.root / folder / "practice/life.py" for folder in ("", "work"))
    text = published.read_text("utf-8")
    mine.write_text(text + "# my last line\n", encoding="utf-8")
    published.write_text(text.replace("Example: prefill", "For example: prefill"), encoding="utf-8")
    shutil.copy(published, checkout.root / "practice" / "extra.py")
    found = checkout.run("--update", script="work/practice/judge.py")
    assert found.returncode == 0, found.stdout + found.stderr
    assert "stubs that are new or changed: life.prefill-chunks\n" in found.stdout
    assert "For example: prefill" in mine.read_text("utf-8")
    assert mine.read_text("utf-8").endswith("# my last line\n")
    assert progress.read_text("utf-8") == '{"exercises": {}, "version": 1}'
