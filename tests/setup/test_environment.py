"""The set-up: which torch is kept, when there is nothing to do, what an interruption leaves."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import environment
import pytest

ROOT = Path(__file__).resolve().parents[2]


class Recorder:
    """Stands in for pip: remembers what was asked of it, and fails where it is told to."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.fail_at: str | None = None

    def __call__(self, root: Path, *arguments: str) -> None:
        self.calls.append(list(arguments))
        if self.fail_at and any(self.fail_at in argument for argument in arguments):
            raise environment.Failed("no network")


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    monkeypatch.setattr(environment, "_pip", recorder)
    return recorder


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder whose environments are made without pip, and without a torch anywhere."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "pyproject.toml").write_text('dependencies = ["torch>=2.11,<2.15"]\n')
    (root / "constraints.txt").write_text("numpy==2.0.0\ntorch==2.13.0\n")
    set_torch(monkeypatch, in_environment="2.13.0+cpu", outside=None)
    monkeypatch.setattr(
        environment, "_has_pip", lambda root: environment.venv_python(root).exists()
    )
    builder = venv.EnvBuilder

    def without_pip(**options: Any) -> venv.EnvBuilder:
        return builder(**options | {"with_pip": False})

    monkeypatch.setattr(environment.venv, "EnvBuilder", without_pip)
    return root


def set_torch(
    monkeypatch: pytest.MonkeyPatch, in_environment: str | None, outside: str | None
) -> None:
    monkeypatch.setattr(environment, "_torch_of_environment", lambda root: in_environment or "")
    found = (outside, Path("outer-site-packages")) if outside else None
    monkeypatch.setattr(environment, "_torch_of_this_python", lambda: found)


def sees_system_packages(root: Path) -> bool:
    return "include-system-site-packages = true" in (root / ".venv" / "pyvenv.cfg").read_text()


def test_a_second_set_up_does_nothing(project: Path, pip: Recorder) -> None:
    environment.make_environment(project, "lab")
    assert len(pip.calls) == 1
    environment.make_environment(project, "lab")
    assert len(pip.calls) == 1


def test_what_is_installed_for_tests_is_enough_for_the_lab(project: Path, pip: Recorder) -> None:
    environment.make_environment(project, "test")
    environment.make_environment(project, "lab")
    assert [call[-1] for call in pip.calls] == [f"{project}[lab,serve,test]"]


def test_changed_lists_are_installed_again(project: Path, pip: Recorder) -> None:
    for extras in ("lab", "test"):
        environment.make_environment(project, extras)
    (project / "constraints.txt").write_text("numpy==2.1.0\ntorch==2.13.0\n")
    environment.make_environment(project, "test")
    assert len(pip.calls) == 3
    assert "numpy==2.1.0" in (project / ".venv" / "constraints.txt").read_text()


def test_an_interrupted_set_up_goes_on_in_the_next_run(project: Path, pip: Recorder) -> None:
    pip.fail_at = "[lab,serve]"
    with pytest.raises(environment.Failed, match="no network"):
        environment.make_environment(project, "lab")
    assert environment.read_stamp(project) == {}
    pip.fail_at = None
    environment.make_environment(project, "lab")
    assert environment.read_stamp(project)["extras"] == "lab"
    (project / ".venv" / environment.STAMP).write_text("{ half")
    environment.make_environment(project, "lab")
    assert len(pip.calls) == 3


def test_an_environment_without_a_python_is_made_again(project: Path, pip: Recorder) -> None:
    (project / ".venv" / "bin").mkdir(parents=True)
    environment.make_environment(project, "lab")
    assert environment.venv_python(project).exists()


def test_a_moved_folder_gets_a_new_environment(
    project: Path, pip: Recorder, tmp_path: Path
) -> None:
    environment.make_environment(project, "lab")
    (project / ".venv" / "old").touch()
    moved = project.rename(tmp_path / "elsewhere")
    environment.make_environment(moved, "lab")
    assert len(pip.calls) == 2
    assert not (moved / ".venv" / "old").exists()


def test_a_torch_in_range_is_kept(
    project: Path,
    pip: Recorder,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    set_torch(monkeypatch, in_environment="2.11.0+cu128", outside="2.11.0+cu128")
    environment.make_environment(project, "lab")
    assert sees_system_packages(project)
    assert "torch 2.11.0+cu128" in capsys.readouterr().out
    assert [call for call in pip.calls if any("torch==" in part for part in call)] == []
    assert (project / ".venv" / "constraints.txt").read_text().splitlines() == [
        "numpy==2.0.0",
        "torch==2.11.0",
    ]


def test_a_torch_out_of_range_is_left_aside(
    project: Path,
    pip: Recorder,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    set_torch(monkeypatch, in_environment="2.13.0", outside="2.10.1")
    environment.make_environment(project, "lab")
    assert not sees_system_packages(project)
    assert "2.10.1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("version", "accepted"),
    [
        ("2.10.9", False),
        ("2.11.0", True),
        ("2.14.1+cu130", True),
        ("2.15.0", False),
        ("3.0", False),
    ],
)
def test_the_range_of_torch(project: Path, version: str, accepted: bool) -> None:
    assert environment.in_range(version, project) is accepted


def test_the_range_is_read_from_the_real_pyproject() -> None:
    assert environment.in_range(importlib.metadata.version("torch"), ROOT)


def test_torch_index_is_for_torch_alone(
    project: Path, pip: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_torch(monkeypatch, in_environment="2.13.0", outside="2.13.0")
    environment.make_environment(project, "lab", "file:///some/index")
    torch, rest = pip.calls
    assert torch[:3] == ["install", "--index-url", "file:///some/index"]
    assert torch[-1] == "torch==2.13.0"
    assert "--index-url" not in rest
    assert not sees_system_packages(project)
    for torch_index in ("file:///some/index", ""):  # given again, or left out: nothing to do
        environment.make_environment(project, "lab", torch_index)
    assert len(pip.calls) == 2
    (project / "constraints.txt").write_text("numpy==2.1.0\ntorch==2.13.0\n")
    environment.make_environment(project, "lab", "file:///some/index")
    assert len(pip.calls) == 3, "other pins are no reason to install the same torch again"


def test_the_usual_torch_comes_with_a_warning_where_it_is_big_and_useless(
    project: Path,
    pip: Recorder,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    versions = iter(["", "2.13.0"])
    monkeypatch.setattr(environment, "_torch_of_environment", lambda root: next(versions))
    monkeypatch.setattr(environment, "warn_about_cuda_build", lambda: True)
    environment.make_environment(project, "lab")
    assert pip.calls[0] == ["install", "torch==2.13.0"]
    assert "TORCH_INDEX" in capsys.readouterr().out


@pytest.mark.parametrize("version", [(3, 10), (3, 14)])
def test_another_python_is_refused_with_a_sentence(version: tuple[int, int]) -> None:
    code = (
        "import sys, types, setup\n"
        f"fake = dict(version_info={(*version, 0)}, executable='python', exit=sys.exit)\n"
        "setup.sys = types.SimpleNamespace(**fake)\n"
        "setup.check_python()"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=dict(os.environ, PYTHONPATH=str(ROOT / "tools")),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert f"3.11, 3.12 or 3.13; python is Python {version[0]}.{version[1]}" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_stamp_is_json_that_a_person_can_read(project: Path, pip: Recorder) -> None:
    environment.make_environment(project, "lab")
    stamp = json.loads((project / ".venv" / environment.STAMP).read_text())
    assert set(stamp) == {"root", "files", "extras", "torch_index"}
