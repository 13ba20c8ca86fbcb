"""How JupyterLab is started: on which page, for whom, and what is printed over SSH."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import environment
import learner_space
import pytest
import start_lab


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, published: Path) -> dict[str, Any]:
    seen: dict[str, Any] = {}

    def execve(path: str, command: list[str], variables: dict[str, str]) -> None:
        seen.update(command=command, variables=variables)

    fake_os = SimpleNamespace(**vars(os) | {"execve": execve, "chdir": lambda path: None})
    monkeypatch.setattr(start_lab, "os", fake_os)
    learner_space.copy_learner_space(published)
    return seen


def test_the_lab_opens_the_first_chapter(started: dict[str, Any], published: Path) -> None:
    start_lab.start_lab(published, "", "")
    assert "--LabApp.default_url=/lab/tree/chapters/00_life.ipynb" in started["command"]
    assert f"--ServerApp.root_dir={published / 'work'}" in started["command"]
    assert "--no-browser" not in started["command"]
    path = started["variables"]["PATH"].split(os.pathsep)
    assert path[0] == str(published / ".venv" / "bin"), "terminals in the lab find .venv's python"


@pytest.mark.parametrize("root_user", [True, False])
def test_root_is_allowed_only_for_root_and_said(
    started: dict[str, Any],
    published: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    root_user: bool,
) -> None:
    monkeypatch.setattr(start_lab, "is_root", lambda: root_user)
    start_lab.start_lab(published, "", "")
    assert ("--allow-root" in started["command"]) is root_user
    assert ("root" in capsys.readouterr().out) is root_user


def test_over_ssh_address_and_tunnel_are_printed(
    started: dict[str, Any], published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start_lab.start_lab(published, "localhost", "9999")
    printed = capsys.readouterr().out
    token = started["variables"]["JUPYTER_TOKEN"]
    assert "ssh -N -L 9999:localhost:9999 " in printed
    assert f"http://localhost:9999/lab/tree/chapters/00_life.ipynb?token={token}" in printed
    assert {"--no-browser", "--ServerApp.ip=localhost", "--ServerApp.port=9999"} <= set(
        started["command"]
    )
    assert not any(token in argument for argument in started["command"])


@pytest.mark.parametrize("port", ["0", "70000", "http", "-1"])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    with pytest.raises(environment.Failed, match="1 to 65535"):
        start_lab.parse_port(port)
