"""Limits of time and memory, and what a learner's code starts: nothing outlives its verdict."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from judge import sandbox, watch
from judge.allowance import BY_THE_CLOCK, Allowance
from judge.runner import Grader, Options, learner_source
from judge.sandbox import Worker
from tests.judge.test_robustness import gone
from tests.judge.toy import CHECK, TOY, first, grade

NEEDS_TORCH = replace(CHECK, name="torch", needs=("torch",), limit_s=20.0)
NOTE_PID = "    open({folder!r} + '/' + str(os.getpid()), 'w').close()\n"


def pids_in(folder: Path) -> list[int]:
    return [int(entry.name) for entry in folder.iterdir()]


@pytest.fixture
def seen(tmp_path: Path) -> Path:
    """A folder in which every process leaves a file named after its id."""
    folder = tmp_path / "seen"
    folder.mkdir()
    return folder


# Time: what counts is the CPU time of the child, or the time that it sleeps.


def test_computing_counts_as_cpu_time_and_sleeping_by_the_clock() -> None:
    busy, asleep = Allowance(1.0), Allowance(1.0)
    busy.spend(0.9, 0.9, active=True)
    asleep.spend(0.9, 0.0, active=False)
    assert (busy.used_up(), asleep.used_up()) == ((), ())
    busy.spend(0.2, 0.2, active=True)
    asleep.spend(0.2, 0.0, active=False)
    assert busy.used_up()[0] == "it was still computing after 1.1 s of CPU time"
    assert "it was waiting, not computing: 1.1 s asleep" in asleep.used_up()[0]


def test_a_child_that_gets_no_cpu_is_not_timed_out_by_the_clock_at_once() -> None:
    starved = Allowance(1.0)
    for _ in range(BY_THE_CLOCK):
        starved.spend(1.0, 0.0625, active=True)
    assert starved.used_up() == ()
    starved.spend(1.0, 0.0625, active=True)
    what, limit = starved.used_up()
    assert what == "in 9 s it got only 0.6 s of CPU time"
    assert "too busy" in limit


def test_the_limit_says_where_it_comes_from() -> None:
    allowance = Allowance(2.5, "20 times what the reference took here")
    allowance.spend(3.0, 3.0, active=True)
    assert allowance.used_up()[1] == "the limit is 2.5 s, 20 times what the reference took here"


def test_a_slow_reference_gives_a_learner_more_time(tmp_path: Path) -> None:
    slow = replace(CHECK, limit_s=0.001, execute="tests.judge.test_robustness_processes:slowly")
    result = first(tmp_path, "def half(x):\n    while True: pass", slow)
    assert result.status == "timeout"
    assert "20 times what the reference took here" in result.lines[2]


def slowly(parts: object, payload: object, context: object) -> object:
    """An execute that takes a moment in every process."""
    from judge.execute import call_function

    time.sleep(0.01)
    return call_function(parts, payload, context)  # type: ignore[arg-type]


def test_a_timeout_shows_where_the_code_stood(tmp_path: Path) -> None:
    code = "def half(x):\n    return inner(x)\ndef inner(x):\n    while True:\n        x += 1\n"
    result = first(tmp_path, code)
    assert [frame.function for frame in result.frames if frame.own] == ["half", "inner"]
    assert "Stack" not in result.output


def test_a_segfault_shows_where_the_code_stood(tmp_path: Path) -> None:
    folder = tmp_path / "l'été"
    folder.mkdir()
    result = first(folder, "import ctypes\ndef half(x):\n    ctypes.string_at(0)\n")
    (frame,) = [frame for frame in result.frames if frame.own]
    assert (frame.line, frame.function, frame.source) == (3, "half", "ctypes.string_at(0)")


@pytest.mark.parametrize(
    ("wait", "words"),
    [("time.sleep(30)", "waiting, not computing"), ("while True: pass", "still computing")],
)
def test_an_import_that_takes_too_long_has_its_own_verdict(
    wait: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "IMPORT_LIMIT_S", 0.6)
    (tmp_path / "slow_module.py").write_text(f"import time\n{wait}\n", encoding="utf-8")
    result = first(tmp_path, "import slow_module\ndef half(x): return x // 2\n")
    assert result.status == "timeout"
    assert f"importing toy_file.py: it was {words}" in result.lines[0]
    assert result.lines[1] == "the limit is 0.6 s"
    own = [(Path(f.file).name, f.source) for f in result.frames if f.own]
    assert own[0] == ("toy_file.py", "import slow_module")
    assert own[1][0] == "slow_module.py"


def test_half_a_message_does_not_keep_the_judge_waiting(tmp_path: Path) -> None:
    code = (
        "import os, struct, time\ndef half(x):\n"
        "    for fd in range(3, 64):\n"
        "        try: os.write(fd, struct.pack('<4sIQ', b'MEJ1', 100, 0) + b'[')\n"
        "        except OSError: pass\n"
        "    time.sleep(60)\n"
    )
    assert first(tmp_path, code).status == "timeout"


def test_a_stopped_process_is_no_endless_wait(tmp_path: Path) -> None:
    code = "import os, signal\ndef half(x): os.kill(os.getpid(), signal.SIGSTOP)"
    result = first(tmp_path, code)
    assert result.status == "timeout"
    assert "waiting, not computing" in result.lines[1]


# Memory.


def test_memory_that_grows_bit_by_bit_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "PLAIN_MEMORY", 400 << 20)
    code = "def half(x):\n    kept = []\n    while True: kept.append(bytearray(50 * 2**20))\n"
    result = first(tmp_path, code, replace(CHECK, limit_s=20.0))
    assert result.status == "error"
    assert "more memory than the judge allows" in "\n".join(result.lines)


def test_memory_of_a_child_with_torch_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "TORCH_MEMORY", 1 << 30)
    code = (
        "import torch\ndef half(x):\n    kept = []\n"
        "    while True: kept.append(torch.ones(10 * 2**20))\n"
    )
    result = first(tmp_path, code, NEEDS_TORCH)
    assert result.status == "crashed"
    assert "it used more than 1 GB of memory" in result.lines[1]


# Processes and threads.


def test_a_process_killed_from_outside(tmp_path: Path, seen: Path) -> None:
    code = "import os, time\ndef half(x):\n" + NOTE_PID.format(folder=str(seen))
    code += "    time.sleep(60)\n"

    def kill() -> None:
        while not pids_in(seen):
            time.sleep(0.01)
        os.kill(pids_in(seen)[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    result = first(tmp_path, code, replace(CHECK, limit_s=20.0))
    killer.join()
    assert result.status == "crashed"
    assert "killed from outside" in result.lines[1]


ESCAPES = {
    "a new session": "os.setsid()",
    "a new group": "os.setpgid(0, 0)",
    "a daemon": "os.setsid()\n        if os.fork(): os._exit(0)\n        os.chdir('/')",
}


@pytest.mark.parametrize("name", ESCAPES)
@pytest.mark.parametrize("end", ["return x // 2", "os._exit(1)", "while True: pass"])
def test_what_left_the_session_ends_with_the_verdict(
    name: str, end: str, tmp_path: Path, seen: Path
) -> None:
    code = (
        "import os, time\ndef half(x):\n    if os.fork() == 0:\n"
        f"        {ESCAPES[name]}\n    {NOTE_PID.format(folder=str(seen))}"
        f"        time.sleep(600)\n"
        f"    while not os.listdir({str(seen)!r}): time.sleep(0.01)\n"
        f"    {end}\n"
    )
    grade(tmp_path, code, CHECK)
    assert pids_in(seen)
    assert all(gone(pid) for pid in pids_in(seen))


def test_a_program_in_a_session_of_its_own_ends_with_the_verdict(
    tmp_path: Path, seen: Path
) -> None:
    code = (
        "import subprocess, sys\ndef half(x):\n"
        "    p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'],\n"
        "                         start_new_session=True)\n"
        f"    open({str(seen)!r} + '/' + str(p.pid), 'w').close()\n    return x // 2\n"
    )
    assert grade(tmp_path, code, CHECK).status == "passed"
    assert pids_in(seen)
    assert all(gone(pid) for pid in pids_in(seen))


def test_a_process_that_left_the_session_costs_a_new_child(tmp_path: Path) -> None:
    file = tmp_path / TOY.file
    code = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\n"
    file.write_text(code + "def half(x): return x // 2\n", encoding="utf-8")
    with Worker(learner_source(TOY, file)) as worker:
        worker.start()
        worker.ready()
        assert not worker.idle


@pytest.mark.parametrize("escape", ["pass", "os.setsid()"])
def test_a_fork_bomb_is_stopped(escape: str, tmp_path: Path, seen: Path) -> None:
    code = (
        "import os, time\ndef half(x):\n    for _ in range(8):\n        if os.fork() == 0:\n"
        f"            {escape}\n        {NOTE_PID.format(folder=str(seen))}    time.sleep(600)\n"
    )
    result = first(tmp_path, code, replace(CHECK, limit_s=20.0))
    assert result.status == "crashed"
    assert "started more than 64 processes" in result.lines[1]
    assert pids_in(seen)
    assert all(gone(pid) for pid in pids_in(seen))


def test_threads_that_go_on_do_not_delay_the_verdict(tmp_path: Path, seen: Path) -> None:
    code = "import os, threading, time\ndef half(x):\n" + NOTE_PID.format(folder=str(seen))
    code += "    threading.Thread(target=time.sleep, args=(600,)).start()\n    return x // 2\n"
    assert grade(tmp_path, code, CHECK).status == "passed"
    assert pids_in(seen)
    assert all(gone(pid) for pid in pids_in(seen))


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_a_learner_may_use_processes(method: str, tmp_path: Path) -> None:
    code = (
        "import multiprocessing\ndef work(x): return x // 2\n"
        "def half(x):\n"
        f"    with multiprocessing.get_context({method!r}).Pool(1) as pool:\n"
        "        return pool.apply(work, (x,))\n"
    )
    result = grade(tmp_path, code, replace(CHECK, limit_s=20.0))
    assert result.status == "passed", result.results[0].lines


def test_processes_of_others_carry_no_mark(tmp_path: Path) -> None:
    file = tmp_path / TOY.file
    file.write_text("def half(x): return x // 2\n", encoding="utf-8")
    source = learner_source(TOY, file)
    with Worker(source) as one, Worker(source) as other:
        for worker in (one, other):
            worker.start()
            worker.ready()
        assert watch.marked(one._mark) == [one._pid]
        one.close()
        assert watch.marked(other._mark) == [other._pid]


def test_two_gradings_at_once_in_one_process(tmp_path: Path) -> None:
    found: dict[str, str] = {}

    def run(name: str, code: str) -> None:
        folder = tmp_path / name
        folder.mkdir()
        file = folder / TOY.file
        file.write_text(code, encoding="utf-8")
        found[name] = Grader(TOY, learner_source(TOY, file), Options(seed=7)).run().status

    right, wrong = "def half(x): return x // 2", "def half(x): return x"
    threads = [
        threading.Thread(target=run, args=(f"{number}", code))
        for number, code in enumerate([right, wrong, right, wrong])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {"0": "passed", "1": "wrong", "2": "passed", "3": "wrong"}
