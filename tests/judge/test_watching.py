"""`--watch`: every way of saving is noticed, only what was saved is graded, nothing ends it."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from judge import practice
from judge.changes import changed, snapshot
from judge.cli import parser
from judge.commands import watching
from judge.commands.watching import Watch
from judge.exercises import EXERCISES, find
from judge.progress import Progress
from judge.report import Reporter
from judge.sandbox import ROOT
from tests.judge.conftest import Checkout

STUBS = ROOT / "practice"
STUB = 'raise ExerciseNotStarted("prefill_chunks")'
RIGHT = "[budget - num_decodes] * (prompt_tokens // (budget - num_decodes))"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "work" / "practice"
    shutil.copytree(STUBS, path, ignore=shutil.ignore_patterns("__pycache__"))
    return path


def concerned(folder: Path, act: Callable[[], object]) -> list[str]:
    before = snapshot(folder, EXERCISES)
    act()
    assert before.moved()
    return [e.id for e in changed(before, snapshot(folder, EXERCISES), EXERCISES)]


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


LIFE = ["life.prefill-chunks", "life.latency-metrics"]


def test_only_the_exercise_whose_region_changed(folder: Path) -> None:
    act = lambda: edit(folder / "life.py", STUB, "return [1]")  # noqa: E731
    assert concerned(folder, act) == ["life.prefill-chunks"]


def test_what_stands_outside_of_the_regions_concerns_the_whole_file(folder: Path) -> None:
    act = lambda: edit(folder / "life.py", "from collections", "import math\nfrom collections")  # noqa: E731
    assert concerned(folder, act) == LIFE


def test_files_that_import_from_a_changed_file_are_concerned(folder: Path) -> None:
    own = '    from kv_cache import attention_over_contiguous\n    raise ExerciseNotStarted("paged'
    edit(folder / "paged_kv.py", '    raise ExerciseNotStarted("paged', own)
    act = lambda: edit(  # noqa: E731
        folder / "kv_cache.py", 'raise ExerciseNotStarted("attention', 'return "attention'
    )
    assert concerned(folder, act) == ["kv-cache.attention", "paged-kv.paged-attention"]


def test_a_helper_file_of_the_learners_own_counts_as_soon_as_it_is_imported(folder: Path) -> None:
    helper = folder / "helper.py"
    helper.write_text("N = 1\n")
    other = snapshot(folder, EXERCISES)
    helper.write_text("N = 22\n")
    assert not other.moved(), "not a known file"
    edit(folder / "life.py", STUB, "import math, helper\n    return [helper.N]")
    assert concerned(folder, lambda: helper.write_text("N = 333\n")) == ["life.prefill-chunks"]


def test_a_replaced_file_of_the_same_size_and_time_is_noticed(folder: Path) -> None:
    path = folder / "life.py"
    found = path.stat()
    twin = folder / "twin"
    text = path.read_text("utf-8")
    twin.write_text(text.replace(STUB, "return [1]".ljust(len(STUB))), encoding="utf-8")
    os.utime(twin, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert twin.stat().st_size == found.st_size
    assert concerned(folder, lambda: twin.replace(path)) == ["life.prefill-chunks"]


def test_a_save_that_changes_nothing_concerns_nobody(folder: Path) -> None:
    assert concerned(folder, lambda: (folder / "life.py").touch()) == []


class Session:
    """Runs a watch whose waits are a script of a learner's actions; the last one is Ctrl-C."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.args = parser().parse_args(["--watch", *arguments])
        self.folder = practice.Folder(folder, own=True)
        self.said = io.StringIO()

    def run(self, *actions: Callable[[], object]) -> str:
        script = iter(actions)

        def sleep(seconds: float) -> None:
            if seconds == watching.POLL_S:
                action = next(script, None)
                if action is None:
                    raise KeyboardInterrupt
                action()

        assert Watch(self.args, self.folder, Reporter(self.said)).run(sleep) == 0
        return self.said.getvalue()


def solve(path: Path) -> None:
    code = (ROOT / "tests/alternatives/life.prefill-chunks/ranges.py").read_text("utf-8")
    body = code[code.index("def prefill_chunks") :]
    text = path.read_text("utf-8")
    (chunks,) = find("life.prefill-chunks")
    found = practice.region(chunks, text)
    assert found is not None
    path.write_text(found.before + "\n" + body + found.after, encoding="utf-8")


def test_from_the_next_unsolved_exercise_to_a_pass_and_the_next(folder: Path) -> None:
    path = folder / "life.py"
    said = Session(folder).run(
        lambda: edit(path, STUB, "return ["),
        lambda: edit(path, "return [", "return [7]"),
        lambda: solve(path),
    )
    verdicts = [
        "NOT STARTED  life.prefill-chunks", "ERROR  life.prefill-chunks",
        "FAIL  life.prefill-chunks", "PASS  life.prefill-chunks",
    ]  # fmt: skip
    places = [said.index(verdict) for verdict in verdicts]
    assert places == sorted(places)
    assert "next is life.latency-metrics" in said
    assert "stopped after" in said
    (chunks,) = find("life.prefill-chunks")
    assert Progress(practice.Folder(folder, own=True)).status(chunks) == "passed"


def test_a_saved_helper_is_loaded_afresh(folder: Path) -> None:
    path, helper = folder / "life.py", folder / "helper.py"
    helper.write_text("def rest(*numbers):\n    return [1]\n")
    edit(path, STUB, "import helper\n    return helper.rest(prompt_tokens, num_decodes, budget)")
    right = (ROOT / "tests/alternatives/life.prefill-chunks/ranges.py").read_text("utf-8")
    said = Session(folder, "life.prefill-chunks").run(
        lambda: helper.write_text(right.replace("def prefill_chunks", "def rest"))
    )
    first, _, second = said.partition("waiting for a save")
    assert "FAIL  life.prefill-chunks: " in first
    assert "PASS  life.prefill-chunks: " in second


def test_a_file_that_is_away_is_waited_for(folder: Path) -> None:
    path, aside = folder / "life.py", folder / "life.bak"
    nothing = [lambda: None] * (watching.MISSING_AFTER + 2)
    said = Session(folder, "life.prefill-chunks").run(
        lambda: path.rename(aside), *nothing, lambda: aside.rename(path),
        lambda: path.rename(aside), lambda: edit(aside, STUB, "return [1]"),
        lambda: aside.rename(path),
    )  # fmt: skip
    assert said.count("is not there; waiting for it") == 1
    assert said.count("NOT STARTED  life.prefill-chunks") == 1, "it came back as it was"
    assert said.count("FAIL  life.prefill-chunks: ") == 1
    assert "stopped after 2 verdicts" in said


def test_a_file_that_was_never_there(folder: Path) -> None:
    (folder / "life.py").unlink()
    said = Session(folder, "life").run(
        lambda: shutil.copy(STUBS / "life.py", folder / "life.py"), lambda: None
    )
    assert "is missing" in said
    assert said.count("NOT STARTED") >= 2


@pytest.mark.parametrize(
    "arguments", [("--json",), ("--only", "random"), ("nonsense",), ("--hint",)]
)
def test_what_makes_no_sense_is_refused(arguments: tuple[str, ...], folder: Path) -> None:
    with pytest.raises((ValueError, SystemExit)):
        Session(folder, *arguments).run()


def test_the_command_ends_with_a_summary_on_ctrl_c(checkout: Checkout) -> None:
    work = checkout.make_work()
    log = checkout.root / "log"
    with log.open("wb") as file:
        judge = subprocess.Popen(
            checkout.command("--watch", "life.prefill-chunks"), cwd=checkout.root, stdout=file,
            stderr=subprocess.STDOUT, env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
    wait_for(log, "waiting for a save")
    solve(work / "life.py")
    wait_for(log, "PASS  life.prefill-chunks")
    wait_for(log, "all that is watched has passed")
    judge.send_signal(signal.SIGINT)
    assert judge.wait(30) == 0
    assert "stopped after 2 verdicts" in log.read_text("utf-8")


def wait_for(log: Path, words: str) -> None:
    for _ in range(600):
        if words in log.read_text("utf-8"):
            return
        time.sleep(0.05)
    raise AssertionError(f"{words!r} never came:\n{log.read_text('utf-8')}")


def test_from_an_exercise_on(checkout: Checkout) -> None:
    found = checkout.run("--from", "paged-kv", "--model", "tiny", "--json")
    assert found.returncode == 3, found.stderr
    start = found.stdout.index('"exercise": "paged-kv.block-pool"')
    assert start < found.stdout.index('"exercise": "paged-kv.slot-mapping"')
    assert "life." not in found.stdout
    assert checkout.run("--from", "nonsense").returncode == 2
    assert checkout.run("ch00", "--from", "ch01").returncode == 2
