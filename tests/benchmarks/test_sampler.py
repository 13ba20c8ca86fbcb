"""The sampler's benchmark runs and reports shares that make sense."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mini_engine.benchmarks.sampler import KINDS, main


def test_small_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "figures.json"
    assert main(["--batch", "2", "--steps", "2", "--rounds", "1", "--json", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "batch 2, vocabulary 49152" in printed
    kinds = json.loads(path.read_text())["kinds"]
    assert kinds.keys() == KINDS.keys()
    assert all(0 < kind["sampling_ms"] < kind["step_ms"] for kind in kinds.values())
