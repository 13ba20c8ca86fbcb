"""The command line where the machine is not as usual: signals, read-only folders, odd terminals."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from judge.sandbox import ROOT
from tests.judge.conftest import Checkout
from tests.judge.test_command_line import wait_for
from tests.judge.test_robustness import gone

RIGHT_CHUNKS = ROOT / "tests/alternatives/life.prefill-chunks/ranges.py"
CHUNKS = "life.prefill-chunks"
STARTS_MORE = """
import os, subprocess, sys, time
def prefill_chunks(*numbers):
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    started = [subprocess.Popen(sleeper), subprocess.Popen(sleeper, start_new_session=True)]
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
    text = " ".join(str(pid) for pid in [os.getpid(), *(p.pid for p in started)])
    open({pids!r}, "w").write(text)
    while True: pass
"""


def heed_signals() -> None:
    """As in a terminal: whoever runs the tests in the background, or with nohup, has some ignored,
    and that is inherited."""
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_DFL)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stopped_judge_ends_what_the_code_started(signum: int, checkout: Checkout) -> None:
    work = checkout.make_work()
    pids = checkout.root / "pids"
    (work / "life.py").write_text(STARTS_MORE.format(pids=str(pids)), encoding="utf-8")
    judge = subprocess.Popen(
        checkout.command(CHUNKS), cwd=checkout.root, preexec_fn=heed_signals,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wait_for(pids)
    judge.send_signal(signum)
    assert judge.wait(30) == 128 + signum
    assert all(gone(int(pid)) for pid in pids.read_text().split())


def test_a_judge_that_is_killed_takes_its_child_with_it(checkout: Checkout) -> None:
    """Its child only: nobody is left who could end what the child started."""
    work = checkout.make_work()
    pid = checkout.root / "pid"
    code = (
        "import os\ndef prefill_chunks(*numbers):\n"
        f"    open({str(pid)!r}, 'w').write(str(os.getpid()))\n    while True: pass\n"
    )
    (work / "life.py").write_text(code, encoding="utf-8")
    judge = subprocess.Popen(
        checkout.command(CHUNKS), cwd=checkout.root,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wait_for(pid)
    judge.kill()
    judge.wait(30)
    assert gone(int(pid.read_text()))


# A folder that nobody can write to. Mode bits do not stop root, so a read-only mount does it.

READ_ONLY = (
    'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && cd "$1" && shift && exec "$@"'
)


def read_only(checkout: Checkout, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line in a mount of its own in which the checkout is read-only."""
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare, which makes a read-only mount")
    command = [
        "unshare", "--mount", "--map-root-user", "sh", "-c", READ_ONLY, "sh", str(checkout.root)
    ]  # fmt: skip
    if subprocess.run([*command, "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine makes no read-only mount for this user")
    return subprocess.run(
        [*command, *checkout.command(*arguments)],
        capture_output=True, text=True, encoding="utf-8", timeout=120,
    )  # fmt: skip


def test_a_read_only_folder_is_graded_and_progress_is_a_note(checkout: Checkout) -> None:
    shutil.copy(RIGHT_CHUNKS, checkout.make_work() / "life.py")
    found = read_only(checkout, CHUNKS)
    assert found.returncode == 0, found.stdout + found.stderr
    assert f"PASS  {CHUNKS}: 7 of 7 checks passed" in found.stdout
    assert "note: progress was not saved" in found.stderr
    assert "Read-only file system" in found.stderr
    assert not (checkout.root / "work" / "progress.json").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 0, "next: life.prefill-chunks"),
        (("--list",), 0, "life.prefill-chunks"),
        ((CHUNKS, "--hint"), 0, "hint 1 of 3"),
        ((CHUNKS, "--solution", "--yes"), 0, "def prefill_chunks"),
        ((CHUNKS,), 3, "NOT STARTED"),
        ((CHUNKS, "--reset"), 2, "no backup of life.py could be made"),
        ((CHUNKS, "--repro", "worked-examples"), 2, "Read-only file system"),
    ],
)
def test_no_command_ends_in_a_traceback_in_a_read_only_folder(
    arguments: tuple[str, ...], code: int, words: str, checkout: Checkout
) -> None:
    work = checkout.make_work()
    if "--reset" in arguments or "--repro" in arguments:
        text = (work / "life.py").read_text("utf-8")
        stub = 'raise ExerciseNotStarted("prefill_chunks")'
        (work / "life.py").write_text(text.replace(stub, "return [1]"), encoding="utf-8")
    found = read_only(checkout, *arguments)
    assert "Traceback" not in found.stderr
    assert found.returncode == code, found.stdout + found.stderr
    assert words in found.stdout + found.stderr


# Terminals.


def test_a_terminal_without_utf_8(checkout: Checkout) -> None:
    work = checkout.make_work()
    code = (
        "def prefill_chunks(*numbers):\n    print('\\u2713 fertig, été')\n    raise KeyError('ñ')\n"
    )
    (work / "life.py").write_text(code, encoding="utf-8")
    plain = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONIOENCODING"}
    found = subprocess.run(
        checkout.command(CHUNKS), cwd=checkout.root, capture_output=True, timeout=60,
        env={**environment, **plain, "NO_COLOR": "1"},
    )  # fmt: skip
    assert found.returncode == 1, found.stderr
    assert found.stdout.isascii()
    assert b"Traceback" not in found.stderr
    assert b"\\u2713 fertig, \\xe9t\\xe9" in found.stdout
    assert b"KeyError: '\\xf1'" in found.stdout


@pytest.mark.parametrize("no_color", [True, False])
def test_colours_in_a_terminal_unless_it_wants_none(no_color: bool, checkout: Checkout) -> None:
    text = in_terminal(checkout, {"NO_COLOR": "1"} if no_color else {})
    assert b"life.prefill-chunks" in text
    assert (b"\x1b[" in text) is not no_color


def in_terminal(checkout: Checkout, environment: dict[str, str]) -> bytes:
    """What the command line writes to a terminal."""
    ours, theirs = pty.openpty()
    usual = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CI")}
    judge = subprocess.Popen(
        checkout.command(), cwd=checkout.root, stdout=theirs, stderr=theirs,
        env={**usual, "TERM": "xterm-256color", **environment},
    )  # fmt: skip
    os.close(theirs)
    text = b""
    try:
        while piece := os.read(ours, 65536):
            text += piece
    except OSError:  # how Linux says that the other end of a terminal was closed
        pass
    os.close(ours)
    assert judge.wait(60) == 0
    return text


def test_the_project_may_lie_anywhere(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "über uns; rm $HOME 'x' \"y\" (1)")
    shutil.copy(RIGHT_CHUNKS, checkout.make_work() / "life.py")
    found = checkout.run(CHUNKS, cwd=str(tmp_path), script=str(checkout.root / "practice/judge.py"))
    assert found.returncode == 0, found.stdout + found.stderr
