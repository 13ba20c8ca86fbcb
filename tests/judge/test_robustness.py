"""Whatever a learner's file does ends in a clear verdict, in bounded time, and leaves nothing."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from judge import sandbox
from tests.judge.toy import CHECK, LIST, first, grade

HOSTILE = {
    "busy loop": ("def half(x):\n    while True: pass", "timeout", "still computing"),
    "sleeping": ("import time\ndef half(x): time.sleep(60)", "timeout", "it was waiting"),
    "sys.exit": ("import sys\ndef half(x): sys.exit(0)", "error", "sys.exit() ends a program"),
    "SystemExit": ("def half(x): raise SystemExit", "error", "sys.exit() ends a program"),
    "os._exit": ("import os\ndef half(x): os._exit(0)", "crashed", "exit code 0"),
    "exit at import": ("raise SystemExit(0)", "error", "can't be imported"),
    "error at import": ("1 / 0", "error", "ZeroDivisionError"),
    "syntax error": ("def half(x) return x", "error", "SyntaxError"),
    "missing function": ("def other(x): return x", "error", "the file has no half"),
    "wrong signature": ("def half(): return 1", "error", "compare the signature"),
    "segfault": ("import ctypes\ndef half(x): ctypes.string_at(0)", "crashed", "SIGSEGV"),
    "killed": ("import os\ndef half(x): os.kill(os.getpid(), 9)", "crashed", "SIGKILL"),
    "memory": ("def half(x): return [0] * 10**11", "error", "more memory than the judge allows"),
    "closed channel": (
        "import os, time\ndef half(x):\n    os.closerange(3, 64)\n    time.sleep(60)",
        "error",
        "closed the judge's result channel",
    ),
    "str() raises": (
        "class E(Exception):\n    def __str__(self): return 1 / 0\ndef half(x): raise E",
        "error",
        "str() of this exception raises",
    ),
    "recursion": ("def half(x): return half(x)", "error", "RecursionError"),
    "not callable": ("half = 3", "error", "TypeError"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_misbehaviour_has_its_own_verdict(name: str, tmp_path: Path) -> None:
    code, status, words = HOSTILE[name]
    result = first(tmp_path, code)
    assert result.status == status, result.lines
    assert words in "\n".join(result.lines)


WRONG_VALUES = {
    "bool": ("def half(x): return True if x == 2 else x // 2", "bool"),
    "float": ("def half(x): return x / 2", "float"),
    "numpy": ("import numpy\ndef half(x): return numpy.int64(x // 2)", "numpy.int64"),
    "subclass": ("class I(int): pass\ndef half(x): return I(x // 2)", "I"),
    "always equal": (
        "class A:\n    def __eq__(self, other): return True\n    __hash__ = None\n"
        "def half(x): return A()",
        "A",
    ),
    "no return": ("def half(x): x // 2", "None"),
    "repr raises": (
        "class A:\n    def __repr__(self): raise KeyboardInterrupt\ndef half(x): return A()",
        "its repr() raises",
    ),
}


@pytest.mark.parametrize("name", WRONG_VALUES)
def test_a_value_of_another_type_is_wrong_and_named(name: str, tmp_path: Path) -> None:
    code, words = WRONG_VALUES[name]
    result = first(tmp_path, code)
    assert result.status == "wrong"
    assert words in "\n".join(result.lines)


WRITE_ALL = (
    "import os\ndef spray(data):\n    for fd in range(3, 64):\n        try: os.write(fd, data)\n"
    "        except OSError: pass\n"
)
CHANNEL = {
    "junk": "b'junk' * 100",
    "pickle": "__import__('pickle').dumps({'number': 1, 'answer': {'value': 1}})",
    "huge": "__import__('struct').pack('<4sIQ', b'MEJ1', 2**31, 2**62)",
    "not JSON": "__import__('struct').pack('<4sIQ', b'MEJ1', 4, 0) + b'{{{{'",
    "odd tags": "__import__('struct').pack('<4sIQ', b'MEJ1', 10, 0) + b'{\"dict\":3}'",
    "other number": "__import__('judge.wire').wire.encode({'number': 99, 'answer': {'value': 1}})",
    "no answer": "__import__('judge.wire').wire.encode(7)",
}


@pytest.mark.parametrize("name", CHANNEL)
def test_a_forged_message_is_no_answer(name: str, tmp_path: Path) -> None:
    code = f"{WRITE_ALL}def half(x):\n    spray({CHANNEL[name]})\n    return x // 2"
    assert first(tmp_path, code).status == "error"


def test_a_forged_answer_is_still_compared(tmp_path: Path) -> None:
    forged = "__import__('judge.wire').wire.encode({'number': 2, 'answer': {'value': 77}})"
    result = first(tmp_path, f"{WRITE_ALL}def half(x):\n    spray({forged})\n    return 77")
    assert result.status == "wrong"


@pytest.mark.parametrize(
    "patch",
    [
        "import builtins; builtins.isinstance = lambda *a: True",
        "import builtins; builtins.len = lambda x: 0",
        "import json; json.dumps = lambda *a, **k: '1'",
        "import time; time.monotonic = lambda: 0.0",
        "import judge.wire as w; w.encode = lambda v: b''",
        "import judge.compare as c; c.function_answer = c.same = lambda *a, **k: None",
        "import judge.execute as e; e.call_function = lambda *a: {'value': None}",
    ],
)
def test_patches_do_not_turn_wrong_into_right(
    patch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "IMPORT_LIMIT_S", 2.0)
    result = first(tmp_path, f"{patch}\ndef half(x): return 123456789")
    assert result.status in ("wrong", "error", "timeout", "crashed")


def test_a_gigabyte_of_output_is_stopped(tmp_path: Path) -> None:
    for out in ("print(text)", "os.write(1, text.encode())", "print(text, file=sys.stderr)"):
        code = (
            "import os, sys\ndef half(x):\n    text = 'x' * 10**6\n"
            f"    for _ in range(1000): {out}\n    return x // 2"
        )
        result = first(tmp_path, code, replace(CHECK, limit_s=20.0))
        assert result.status == "error"
        assert "printed more than 16 MB" in result.lines[1]


def test_output_is_kept_and_shown_apart(tmp_path: Path) -> None:
    result = first(tmp_path, "def half(x):\n    print('looking at', x)\n    return x")
    assert result.status == "wrong"
    assert "looking at 2" in result.output


def test_changed_arguments_are_wrong(tmp_path: Path) -> None:
    result = first(tmp_path, "def half(xs): return xs.pop() // 2", LIST)
    assert result.status == "wrong"
    assert "changed its arguments" in result.lines[1]


def test_a_forked_copy_does_not_answer_twice(tmp_path: Path) -> None:
    assert (
        grade(tmp_path, "import os\ndef half(x):\n    os.fork()\n    return x // 2").status
        == "passed"
    )


def test_what_was_started_ends_with_the_verdict(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code = (
        "import subprocess, sys, threading, time\n"
        "def half(x):\n"
        "    p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"    open({str(pid_file)!r}, 'w').write(str(p.pid))\n"
        "    threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "    return x // 2\n"
    )
    assert grade(tmp_path, code, CHECK).status == "passed"
    assert gone(int(pid_file.read_text()))


def gone(pid: int) -> bool:
    """Whether a process ends within a few seconds (a zombie has ended)."""
    for _ in range(200):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        stat = Path(f"/proc/{pid}/stat")
        if stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


def test_a_swarm_of_processes_is_stopped(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    seen.mkdir()
    code = (
        "import os, time\ndef half(x):\n"
        "    for _ in range(400):\n"
        "        if os.fork() == 0:\n"
        f"            open({str(seen)!r} + '/' + str(os.getpid()), 'w').close()\n"
        "            time.sleep(600)\n"
        "    time.sleep(600)\n"
    )
    result = first(tmp_path, code)
    assert result.status == "crashed"
    assert "started more than 64 processes" in result.lines[1]
    pids = [int(entry.name) for entry in seen.iterdir()]
    assert pids
    assert all(gone(pid) for pid in pids)


def test_after_two_lost_processes_the_rest_is_left_out(tmp_path: Path) -> None:
    code = "import os\ndef half(x): os._exit(3)"
    result = grade(tmp_path, code, CHECK, CHECK, CHECK)
    assert [r.status for r in result.results] == ["crashed", "crashed", "not run"]
    assert result.status == "crashed"


def test_a_lost_process_does_not_spoil_the_next_check(tmp_path: Path) -> None:
    code = "import os\ndef half(x):\n    if x % 2 == 0: os._exit(0)\n    return x // 2"
    assert [r.status for r in grade(tmp_path, code).results] == ["crashed", "passed"]


def test_an_edited_file_is_picked_up_within_a_second(tmp_path: Path) -> None:
    assert grade(tmp_path, "def half(x): return x // 3").status == "wrong"
    assert grade(tmp_path, "def half(x): return x // 2").status == "passed"


def test_a_name_with_spaces_and_letters_beyond_ascii(tmp_path: Path) -> None:
    folder = tmp_path / "mes copies d'été"
    folder.mkdir()
    assert grade(folder, "def half(x): return x // 2").status == "passed"


def test_learner_files_import_each_other(tmp_path: Path) -> None:
    (tmp_path / "other_topic.py").write_text(
        "def helper(x):\n    return x // 2\n", encoding="utf-8"
    )
    code = "from other_topic import helper\ndef half(x): return helper(x)"
    assert grade(tmp_path, code).status == "passed"
