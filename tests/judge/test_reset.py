"""`--reset`: one exercise back to its stub, every other line and a whole backup kept."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import pytest

from judge import backups, practice
from judge.backups import Backups, NotChanged
from judge.commands.reset import reset
from judge.exercises import find
from judge.report import Reporter
from judge.sandbox import ROOT
from tests.judge.conftest import Checkout

(CHUNKS,) = find("life.prefill-chunks")
STUBS = ROOT / "practice"
STUB = (STUBS / "life.py").read_bytes()


class Space:
    """A learner's space with one file, and what the judge says."""

    def __init__(self, root: Path) -> None:
        self.file = root / "work" / "practice" / "life.py"
        self.file.parent.mkdir(parents=True)
        self.said = io.StringIO()

    def reset(self, text: str | bytes) -> bytes:
        self.file.write_bytes(text if isinstance(text, bytes) else text.encode())
        folder = practice.Folder(self.file.parent, own=True)
        assert reset(CHUNKS, folder, Reporter(self.said), STUBS) == 0
        return self.file.read_bytes()

    def backups(self) -> list[Path]:
        return sorted(self.file.parents[1].glob("backups/*/practice/life.py"))


@pytest.fixture
def space(tmp_path: Path) -> Space:
    return Space(tmp_path)


def edited(own: str = "    return [prompt_tokens]\n") -> str:
    """The published file with a body for both exercises, and notes outside of the marks."""
    text = STUB.decode()
    text = text.replace('    raise ExerciseNotStarted("prefill_chunks")\n', own)
    text = text.replace('    raise ExerciseNotStarted("goodput")\n', "    return 1.0\n")
    return (
        text.replace("from mini_engine", "import math  # mine\n\nfrom mini_engine", 1) + "# end\n"
    )


def test_only_the_region_of_that_exercise_is_the_stubs_again(space: Space) -> None:
    mine = edited()
    expected = mine.replace(
        "    return [prompt_tokens]\n", '    raise ExerciseNotStarted("prefill_chunks")\n'
    )
    assert space.reset(mine) == expected.encode()
    (copy,) = space.backups()
    assert copy.read_text() == mine
    assert re.fullmatch(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d", copy.parents[1].name)
    assert "back at its stub" in space.said.getvalue()
    assert copy.parents[1].name in space.said.getvalue()


def test_two_resets_in_one_second_keep_both_files(space: Space) -> None:
    texts = [edited("    return [1]\n"), edited("    return [2]\n")]
    for text in texts:
        space.reset(text)
    assert sorted(copy.read_text() for copy in space.backups()) == texts


def test_nothing_to_reset_makes_no_backup(space: Space) -> None:
    assert space.reset(STUB) == STUB
    assert space.backups() == []
    assert "nothing was changed" in space.said.getvalue()


def test_line_ends_and_mode_stay(space: Space) -> None:
    mine = edited().replace("\n", "\r\n")
    space.file.touch(0o755)
    after = space.reset(mine)
    assert b"\n" not in after.replace(b"\r\n", b"")
    assert space.file.stat().st_mode & 0o777 == 0o755


def test_a_symbolic_link_stays_one(space: Space, tmp_path: Path) -> None:
    elsewhere = tmp_path / "mine.py"
    elsewhere.write_text(edited())
    space.file.symlink_to(elsewhere)
    space.reset(edited())
    assert space.file.is_symlink()
    assert 'ExerciseNotStarted("prefill_chunks")' in elsewhere.read_text()
    assert space.backups()[0].read_text() == edited()


@pytest.mark.parametrize(
    "text",
    [
        edited().replace(practice.BEGIN.format(id=CHUNKS.id), ""),
        edited().replace(practice.END.format(id=CHUNKS.id), "# the end"),
        edited() + practice.END.format(id=CHUNKS.id),
        practice.END.format(id=CHUNKS.id) + "\n" + practice.BEGIN.format(id=CHUNKS.id),
        edited().encode() + b"\xff",
    ],
    ids=["no begin", "no end", "two ends", "wrong order", "no UTF-8"],
)
def test_a_file_without_clear_marks_is_left_alone(space: Space, text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"left alone|Nothing was changed"):
        space.reset(text)
    assert space.file.read_bytes() == (text if isinstance(text, bytes) else text.encode())
    assert space.backups() == []


def test_without_a_backup_nothing_is_changed(space: Space) -> None:
    (space.file.parents[1] / "backups").write_text("in the way")
    with pytest.raises(NotChanged, match="no backup"):
        space.reset(edited())
    assert space.file.read_text() == edited()


def test_a_save_in_the_meantime_wins(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Backups):
        def keep(self, path: Path, data: bytes) -> Path:
            path.write_text("saved just now")
            return super().keep(path, data)

    monkeypatch.setattr("judge.commands.reset.Backups", Slow)
    with pytest.raises(NotChanged, match="saved just now"):
        space.reset(edited())
    assert space.file.read_text() == "saved just now"
    assert [path.name for path in space.file.parent.iterdir()] == ["life.py"]


def test_an_interrupted_write_leaves_the_old_file(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*names: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(backups.os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        space.reset(edited())
    monkeypatch.undo()
    assert space.file.read_text() == edited()
    assert os.listdir(space.file.parent) == ["life.py"]


def test_the_command(checkout: Checkout) -> None:
    found = checkout.run("--reset", "life.prefill-chunks")
    assert found.returncode == 2
    assert "make lab" in found.stderr
    assert (checkout.root / "practice" / "life.py").read_bytes() == STUB
    work = checkout.make_work()
    (work / "life.py").write_text(edited(), encoding="utf-8")
    found = checkout.run("life.prefill-chunks", "--reset", script="work/practice/judge.py")
    assert found.returncode == 0, found.stderr
    assert "work/backups/" in found.stdout
    for arguments in (("--reset",), ("ch00", "--reset"), ("--reset", "--hint", "life")):
        assert checkout.run(*arguments).returncode == 2
