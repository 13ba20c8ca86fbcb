"""`--solution`: the reference shown as it stands, and remembered; hints come first, kindly."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
from pathlib import Path

import pytest

from judge.api import Exercise
from judge.commands.solution import solution
from judge.exercises import EXERCISES, find
from judge.practice import Folder
from judge.progress import Progress
from judge.report import Reporter
from judge.sandbox import ROOT
from judge.source import reference_source
from tests.judge.conftest import Checkout

(METRICS,) = find("life.latency-metrics")


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_what_is_shown_is_whole_and_defines_every_symbol(exercise: Exercise) -> None:
    source = reference_source(exercise.reference, exercise.symbols)
    text = source.file.read_text("utf-8")
    assert all(f"\n{piece}\n" in text for piece in source.pieces), "as it stands in the file"
    defined = {getattr(node, "name", "") for node in ast.parse("\n".join(source.pieces)).body}
    assert set(exercise.symbols) <= defined


def test_the_helpers_that_a_part_calls_are_shown_with_it_and_nothing_else() -> None:
    metrics = reference_source(METRICS.reference, METRICS.symbols)
    assert any(piece.startswith("def _check_times") for piece in metrics.pieces)
    rope = reference_source("mini_engine.compute.model", ("apply_rope",))
    assert [piece.partition("(")[0] for piece in rope.pieces] == ["def apply_rope"]


def test_a_module_without_the_symbol_is_named() -> None:
    with pytest.raises(LookupError, match=r"life defines no no_such_part"):
        reference_source("judge.solutions.life", ("no_such_part",))


def test_showing_a_tensor_part_loads_no_torch() -> None:
    code = (
        "import sys; from judge.exercises import EXERCISES; from judge.source import *\n"
        "for e in EXERCISES: reference_source(e.reference, e.symbols)\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)


class Shown:
    def __init__(self, folder: Path) -> None:
        (folder / "practice").mkdir()
        self.folder = Folder(folder / "practice", own=True)

    def __call__(self, *, hints: int = 0, sure: bool = False, **facts: object) -> tuple[int, str]:
        progress = Progress(self.folder)
        for _ in range(hints):
            progress.next_hint(METRICS)
        progress.entries.setdefault(METRICS.id, {}).update(facts)
        said = io.StringIO()
        code = solution(METRICS, progress, Reporter(said), sure=sure)
        return code, said.getvalue()


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    return Shown(tmp_path)


def test_unread_hints_are_named_first_and_yes_is_enough(shown: Shown) -> None:
    code, said = shown(hints=1)
    assert code == 3
    assert "2 of 3 hints of life.latency-metrics are unread" in said
    assert "--solution --yes" in said
    assert "def " not in said
    assert Progress(shown.folder).solution_shown(METRICS) is None
    code, said = shown(sure=True)
    assert code == 0
    assert "def goodput(" in said
    assert "solution shown on 20" in str(Progress(shown.folder).solution_shown(METRICS))
    assert shown()[0] == 0, "shown before: it gives nothing more away"


def test_after_three_hints_no_word_is_needed(shown: Shown) -> None:
    assert shown(hints=3)[0] == 0


def test_whoever_has_passed_may_compare_at_once(shown: Shown) -> None:
    code, said = shown(status="passed", hash=Progress(shown.folder).code(METRICS))
    assert code == 0
    assert "after it passed" in said


def test_the_first_day_is_kept(shown: Shown) -> None:
    _, said = shown(solution_shown="2025-01-31")
    assert "solution shown on 2025-01-31\n" in said


def test_the_overview_says_so(checkout: Checkout) -> None:
    assert checkout.run("life.prefill-chunks", "--solution").returncode == 3
    found = checkout.run("--solution", "life.prefill-chunks", "--yes")
    assert found.returncode == 0, found.stderr
    assert "def prefill_chunks(" in found.stdout
    assert "\x1b" not in found.stdout
    assert "(not tried; solution shown on 20" in checkout.run().stdout
