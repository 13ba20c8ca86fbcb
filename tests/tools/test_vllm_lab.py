"""Owns the proof of the lab; vLLM itself runs only where the lab is set up."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import vllm_lab
import vllm_lab_environment as environment

from mini_engine.benchmarks.replay import OPTIONS, as_records, first_difference

DATA = Path(__file__).parents[1] / "data" / "vllm_traces"
PREEMPTING = DATA / "workload_04_preempt_no_cache.json"
SCHEDULER = """
from mini_engine.control.scheduler import Scheduler as Reference

class Scheduler(Reference):
    def _choose_victim(self):
        {body}
"""


def recorded(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM's answer, as it was recorded."""
    trace = recorded("trace_04_preempt_no_cache") | {"stuck": False}
    monkeypatch.setattr(vllm_lab, "trace_by_vllm", lambda workloads: [trace])


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["vllm_lab.py", *map(str, arguments)])
    return vllm_lab.main()


def written(folder: Path, body: str) -> Path:
    folder.mkdir()
    (folder / "scheduler.py").write_text(SCHEDULER.format(body=body))
    return folder


@pytest.mark.usefixtures("vllm")
def test_the_same_schedule_is_said_to_be_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "run", PREEMPTING) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["step", "vLLM", "mini_engine"]
    assert all(line.endswith("=") for line in lines[1:-1])
    assert any(" out " in line for line in lines)
    assert lines[-1] == "mini_engine: the same schedule as vLLM's in all 17 steps"


@pytest.mark.usefixtures("vllm")
def test_a_learners_other_victim_is_found_and_drawn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    mine = written(tmp_path / "mine", "return self.running[0]")
    picture = tmp_path / "difference.html"
    assert run(monkeypatch, "run", PREEMPTING, "--mine", mine, "--picture", picture) == 1
    out = capsys.readouterr().out
    assert "yours: Scheduler\n" in out
    assert "mini_engine: the same schedule" in out
    assert "yours: differs from vLLM's in step 7 (vLLM, then yours):\n" in out
    assert "  preempted: " in out
    assert "Steps 5 to 10, around step 7" in picture.read_text(encoding="utf-8")


@pytest.mark.usefixtures("vllm")
def test_a_learners_error_is_shown_with_the_step_it_stopped_in(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    mine = written(tmp_path / "mine", "raise LookupError('no victim')")
    assert run(monkeypatch, "run", PREEMPTING, "--mine", mine) == 1
    out = capsys.readouterr().out
    assert "yours stopped in step 7:" in out
    assert "LookupError: no victim" in out
    assert "(ended)" in out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["run", "nowhere.json"], "nowhere.json"),
        (
            ["run", str(DATA / "trace_01_single.json")],
            "is no workload: it lacks block_size, num_blocks",
        ),
        (["run", str(PREEMPTING), "--mine", "nowhere"], "there is no folder"),
        (["run", "3"], "run: python tools/vllm_lab.py setup"),
    ],
)
def test_what_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: list[str],
    complaint: str,
) -> None:
    monkeypatch.setenv("MINI_ENGINE_CACHE", str(tmp_path))
    if "--mine" in arguments:
        monkeypatch.setattr(vllm_lab, "trace_by_vllm", lambda w: [{"steps": [], "stuck": False}])
    assert run(monkeypatch, *arguments) == 2
    assert complaint in capsys.readouterr().err


def test_a_number_is_a_random_workload_and_options_have_defaults(tmp_path: Path) -> None:
    assert vllm_lab.load_workload("7")["name"] == "random_007"
    small = tmp_path / "small.json"
    request = {"id": "a", "arrival_step": 0, "prompt": [1], "output": [2]}
    sizes = dict.fromkeys(("block_size", "num_blocks", "max_num_batched_tokens", "max_num_seqs"), 4)
    small.write_text(json.dumps({**sizes, "requests": [request]}))
    found = vllm_lab.load_workload(str(small))
    assert set(OPTIONS) - set(found) == {"long_prefill_token_threshold", "watermark"}


def test_a_set_up_that_fails_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(folder: Path, packages: list[str]) -> None:
        assert (folder / "bin" / "python").exists()
        raise environment.LabFailed("no network")

    monkeypatch.setenv("MINI_ENGINE_CACHE", str(tmp_path))
    monkeypatch.setattr(environment, "_pip", fail)
    with pytest.raises(environment.LabFailed, match="no network"):
        environment.set_up(tmp_path)
    assert not environment.lab_folder().exists()


def test_the_lab_sees_this_pythons_packages_and_not_this_project() -> None:
    folders = environment.packages_of_this_python()
    assert any((Path(folder) / "torch").is_dir() for folder in folders)
    assert not any((Path(folder) / "json").is_dir() for folder in folders)
    assert str(vllm_lab.ROOT) not in folders


@pytest.mark.slow
def test_vllm_itself_still_says_what_was_recorded() -> None:
    if not environment.lab_folder().is_dir():
        pytest.skip("no lab here; `python tools/vllm_lab.py setup` makes it")
    names = ["04_preempt_no_cache", "10_aborts"]
    traces = vllm_lab.trace_by_vllm([recorded(f"workload_{name}") for name in names])
    for name, trace in zip(names, traces, strict=True):
        expected = as_records(recorded(f"trace_{name}")["steps"])
        assert first_difference(expected, as_records(trace["steps"])) is None
