"""The test of the judge notices when the judge falls short."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from judge import selftest
from judge.exercises import find
from judge.sandbox import ROOT

NAME = "life.prefill-chunks"
RIGHT = ROOT / "tests/alternatives" / NAME / "ranges.py"
WRONG = ROOT / "tests/mutants" / NAME / "ignores_decodes.py"


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    mutants, alternatives = tmp_path / "mutants", tmp_path / "alternatives"
    for folder in (mutants, alternatives):
        (folder / NAME).mkdir(parents=True)
    monkeypatch.setattr(selftest, "MUTANTS", mutants)
    monkeypatch.setattr(selftest, "ALTERNATIVES", alternatives)
    return mutants / NAME, alternatives / NAME


def problems() -> str:
    return "\n".join(dict(selftest.run(find(NAME), seeds=1, workers=2))[NAME].problems)


def test_too_few_files_are_a_problem(folders: tuple[Path, Path]) -> None:
    found = problems()
    assert "0 mutants, at least 8 are needed" in found
    assert "0 alternatives, at least 3 are needed" in found


def test_a_mutant_that_passes_is_a_problem(folders: tuple[Path, Path]) -> None:
    text = RIGHT.read_text("utf-8")
    (folders[0] / "right.py").write_text(f"# mistake: none\n{text}", encoding="utf-8")
    assert "mutant right.py, seed 0: not rejected (status passed)" in problems()


def test_a_wrong_name_is_a_problem(folders: tuple[Path, Path]) -> None:
    text = WRONG.read_text("utf-8").partition("\n")[2]
    (folders[0] / "m.py").write_text(f"# mistake: something else\n{text}", encoding="utf-8")
    assert "expected 'something else'" in problems()


def test_an_alternative_that_fails_is_a_problem(folders: tuple[Path, Path]) -> None:
    shutil.copy(WRONG, folders[1] / "wrong.py")
    assert "alternative wrong.py, seed 0: status wrong" in problems()
