"""Processes are shared between the exercises of a run, and no verdict depends on that."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge.api import Check, Exercise, ExerciseResult
from judge.exercises import find
from judge.runner import Grader, Options, learner_source, reference_source
from judge.sandbox import Source, Worker
from judge.workers import Workers
from tests.judge.toy import CHECK, EXERCISE, LIST, ODD, TOY

RIGHT = "def half(x): return x // 2\n"
WHOLE = replace(TOY, id="toy.again")  # the same function as another exercise


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Source]:
    """What every process that was started loaded first."""
    found: list[Source] = []
    start = Worker.start

    def noting(worker: Worker) -> None:
        found.append(worker.source)
        start(worker)

    monkeypatch.setattr(Worker, "start", noting)
    return found


@pytest.fixture
def shared() -> Iterator[Workers]:
    with Workers() as found:
        yield found


def grade(
    folder: Path, code: str, shared: Workers, exercise: Exercise = TOY, *checks: Check
) -> ExerciseResult:
    file = folder / exercise.file
    file.write_text(code, encoding="utf-8")
    grader = Grader(exercise, learner_source(exercise, file), Options(seed=7), shared)
    grader.details = replace(EXERCISE, checks=checks or EXERCISE.checks)
    return grader.run()


def test_exercises_of_a_file_share_a_process(
    tmp_path: Path, shared: Workers, started: list[Source]
) -> None:
    for exercise in (TOY, WHOLE, TOY):
        assert grade(tmp_path, RIGHT, shared, exercise).status == "passed"
    assert len(started) == 1


def test_another_file_has_another_process(
    tmp_path: Path, shared: Workers, started: list[Source]
) -> None:
    assert grade(tmp_path, RIGHT, shared).status == "passed"
    other = replace(TOY, file="other_file.py")
    assert grade(tmp_path, RIGHT, shared, other).status == "passed"
    assert len(started) == 2


def test_a_graded_file_is_not_shared_after_its_processes_are_ended(
    tmp_path: Path, shared: Workers, started: list[Source]
) -> None:
    grade(tmp_path, RIGHT, shared)
    shared.end_learners()
    grade(tmp_path, RIGHT, shared)
    assert len(started) == 2


COUNTS = (
    "import {module}\ncalls = 0\ndef half(x):\n    global calls\n    calls += 1\n"
    "    {module}.calls = getattr({module}, 'calls', 0) + 1\n"
    "    most = len(range({number}))\n"
    "    return x // 2 if calls <= most and {module}.calls <= most else -1\n"
)


def test_each_exercise_has_its_file_and_its_helpers_afresh(
    tmp_path: Path, shared: Workers, started: list[Source]
) -> None:
    (tmp_path / "helper.py").write_text("", encoding="utf-8")
    code = COUNTS.format(module="helper", number=4)  # a check has four calls
    assert grade(tmp_path, code, shared, TOY, CHECK).status == "passed"
    assert grade(tmp_path, code, shared, WHOLE, CHECK).status == "passed"
    assert len(started) == 1
    assert grade(tmp_path, code, shared, TOY, CHECK, ODD).status == "wrong"


def test_an_edit_between_two_gradings_is_picked_up(tmp_path: Path, shared: Workers) -> None:
    assert grade(tmp_path, "def half(x): return x // 3", shared).status == "wrong"
    assert grade(tmp_path, RIGHT, shared).status == "passed"


LOST = {
    "crash": "import os\ndef half(x): os._exit(3)",
    "timeout": "def half(x):\n    while True: pass",
    "import": "1 / 0",
}


@pytest.mark.parametrize("name", LOST)
def test_a_lost_process_does_not_touch_the_next_exercise(
    name: str, tmp_path: Path, shared: Workers, started: list[Source]
) -> None:
    assert grade(tmp_path, LOST[name], shared, TOY, CHECK).status in ("crashed", "timeout", "error")
    assert grade(tmp_path, RIGHT, shared, WHOLE).status == "passed"
    assert len(started) == 2


def test_a_process_that_dies_between_two_exercises_is_replaced(
    tmp_path: Path, shared: Workers, started: list[Source]
) -> None:
    late = "import os, threading\nthreading.Timer(0.3, os._exit, [1]).start()\n"
    assert grade(tmp_path, late + RIGHT, shared, TOY, LIST_OF_ONE).status == "passed"
    (worker,) = shared._learners.values()
    os.waitid(os.P_PID, worker._pid, os.WEXITED | os.WNOWAIT)
    assert grade(tmp_path, RIGHT, shared, WHOLE).status == "passed"
    assert len(started) == 2


LIST_OF_ONE = replace(CHECK, cases=lambda rng: CHECK.cases(rng)[:1])
TRACES = {
    "a thread": "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    "a process": "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])",
    "a patch": "builtins.sorted = lambda x: x",
    "a folder": "os.chdir('/')",
}


@pytest.mark.parametrize("name", TRACES)
def test_what_code_left_behind_costs_a_new_process(
    name: str, tmp_path: Path, shared: Workers, started: list[Source]
) -> None:
    code = (
        "import builtins, os, subprocess, sys, threading, time\n"
        f"def half(x):\n    {TRACES[name]}\n    return x // 2\n"
    )
    assert grade(tmp_path, code, shared, TOY, LIST_OF_ONE).status == "passed"
    assert grade(tmp_path, RIGHT, shared, WHOLE).status == "passed"
    assert len(started) == 2


def test_the_cpu_limit_counts_from_each_load(tmp_path: Path, shared: Workers) -> None:
    ask = (
        "import resource, time\n"
        "def half(x):\n"
        "    used = time.process_time()\n"
        "    while time.process_time() < used + 1.1: pass\n"
        "    return resource.getrlimit(resource.RLIMIT_CPU)[0]\n"
    )
    slow = replace(LIST_OF_ONE, limit_s=30.0)
    limits = [
        grade(tmp_path, ask, shared, exercise, slow).results[0].got["value"]
        for exercise in (TOY, WHOLE)
    ]
    assert limits[0] >= 120
    assert limits[1] > limits[0]


def test_torch_is_imported_once_for_the_reference_and_once_for_a_file(
    shared: Workers, started: list[Source]
) -> None:
    for exercise in find("paged-kv"):
        result = Grader(
            exercise, reference_source(exercise), Options(seed=3, models=("tiny",)), shared
        ).run()
        assert result.status == "passed", [r.lines for r in result.results]
    assert sorted(source.torch for source in started) == [False, True, True]


def test_traces_in_torch_cost_a_new_process_too(
    tmp_path: Path, shared: Workers, started: list[Source]
) -> None:
    needy = replace(LIST_OF_ONE, needs=("torch",))
    code = "import torch\ndef half(x):\n    torch.set_grad_enabled(False)\n    return x // 2\n"
    for exercise in (TOY, WHOLE):
        assert grade(tmp_path, code, shared, exercise, needy).status == "passed"
    assert len(started) == 3  # two for the learner, one for the reference


def later(status: str) -> tuple[Check, ...]:
    """Torch-free checks, then one with torch that runs if they pass."""
    last = replace(LIST_OF_ONE, name="last", needs=("torch",), last=True)
    return (CHECK, ODD, replace(LIST, name=status), last)


def test_a_stub_or_an_early_failure_starts_no_process_with_torch(
    tmp_path: Path, shared: Workers, started: list[Source]
) -> None:
    stub = (
        "from mini_engine.interfaces import ExerciseNotStarted\n"
        "def half(x): raise ExerciseNotStarted('half')"
    )
    assert grade(tmp_path, stub, shared, TOY, *later("stub")).status == "not started"
    assert grade(tmp_path, "def half(x): return x", shared, TOY, *later("no")).status == "wrong"
    assert not any(source.torch for source in started)


def test_torch_is_started_ahead_and_called_off_when_in_vain(
    tmp_path: Path, shared: Workers, started: list[Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    code = "def half(x): return 7 if isinstance(x, list) else x // 2"
    file = tmp_path / TOY.file
    file.write_text(code, encoding="utf-8")

    def note(result: Any) -> None:
        seen.append((result.check.name, [s.torch for s in started].count(True)))

    grader = Grader(TOY, learner_source(TOY, file), Options(seed=7, on_check=note), shared)
    grader.details = replace(EXERCISE, checks=later("list"))
    assert grader.run().status == "wrong"
    assert seen == [("even", 0), ("odd", 2), ("list", 2), ("last", 2)]
    assert not any(key[1] for key in (*shared._learners, *shared._references))
