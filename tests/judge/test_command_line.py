"""The command line, run for real in a checkout of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from judge.brief import brief
from judge.sandbox import ROOT
from tests.judge.conftest import Checkout
from tests.judge.test_robustness import gone

POOL = "paged-kv.block-pool"
CACHE = "prefix-cache.cache"
RIGHT_CHUNKS = ROOT / "tests/alternatives/life.prefill-chunks/ranges.py"
WRONG_POOL = ROOT / "tests/mutants" / POOL / "double_free_ignored.py"


def test_progress_and_the_next_exercise(checkout: Checkout) -> None:
    found = checkout.run()
    assert found.returncode == 0, found.stderr
    assert "practice folder: practice (the stubs as published" in found.stdout
    assert "next: life.prefill-chunks" in found.stdout
    assert "practice/life.py:" in found.stdout


def test_stubs_are_not_started(checkout: Checkout) -> None:
    found = checkout.run("ch00")
    assert found.returncode == 3, found.stderr
    assert "NOT STARTED  life.prefill-chunks: 0 of 7 checks passed" in found.stdout
    assert "0 of 2 exercises passed" in found.stdout


def test_right_code_passes_and_is_remembered_until_it_is_edited(checkout: Checkout) -> None:
    work = checkout.make_work()
    shutil.copy(RIGHT_CHUNKS, work / "life.py")
    found = checkout.run("life.prefill-chunks", script="work/practice/judge.py")
    assert found.returncode == 0, found.stdout + found.stderr
    assert "PASS  life.prefill-chunks: 7 of 7 checks passed" in found.stdout
    assert "work/practice (your copies)" in found.stdout
    assert "1 of" in checkout.run().stdout
    with (work / "life.py").open("a", encoding="utf-8") as file:
        file.write("# a thought\n")
    assert "edited since it passed" in checkout.run("--list").stdout


def test_a_failure_says_what_where_and_how_to_go_on(checkout: Checkout) -> None:
    work = checkout.make_work()
    shutil.copy(WRONG_POOL, work / "paged_kv.py")
    found = checkout.run(POOL, "--seed", "5")
    assert found.returncode == 1
    for words in (
        "FAIL  paged-kv.block-pool / a block is free again when its last holder is gone",
        "expected ValueError, but it returned None",
        "state before:",
        "looks like: a second free goes unnoticed",
        f"hint 1 of 3: python practice/judge.py {POOL} --hint",
        f"repeat: python practice/judge.py {POOL} --only holders --seed 5",
        "checks passed; 4 not run; seed 5",
    ):
        assert words in found.stdout, found.stdout
    assert "mini_engine/control" not in found.stdout  # no line of the reference
    again = checkout.run(POOL, "--only", "holders", "--seed", "5")
    assert "expected ValueError, but it returned None" in again.stdout
    assert f"last failure: {POOL} / holders" in checkout.run().stdout


def test_three_hints_one_after_another(checkout: Checkout) -> None:
    shown = [checkout.run("life.prefill-chunks", "--hint").stdout for _ in range(4)]
    assert [f"hint {n} of 3" in text for n, text in zip((1, 2, 3, 3), shown, strict=True)] == [
        True
    ] * 4


def test_json_holds_the_whole_verdict(checkout: Checkout) -> None:
    work = checkout.make_work()
    shutil.copy(WRONG_POOL, work / "paged_kv.py")
    found = checkout.run(POOL, "--json", "--seed", "5")
    (verdict,) = json.loads(found.stdout)
    assert (verdict["exercise"], verdict["status"], verdict["seed"]) == (POOL, "wrong", 5)
    failed = next(check for check in verdict["checks"] if check["name"] == "holders")
    assert failed["mistake"] == "a second free goes unnoticed"


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("ch00", "--only", "random"),
        ("life.prefill-chunks", "--only", "no such check"),
        ("--only", "random"),
        ("--debug", "random"),
        ("ch00", "--hint"),
        ("--seed", "x"),
    ],
)
def test_wrong_usage_is_exit_code_2(arguments: tuple[str, ...], checkout: Checkout) -> None:
    found = checkout.run(*arguments)
    assert found.returncode == 2
    assert found.stderr
    assert "Traceback" not in found.stderr


def test_debug_runs_the_failing_case_in_the_foreground(checkout: Checkout) -> None:
    work = checkout.make_work()
    code = RIGHT_CHUNKS.read_text("utf-8").replace(
        "    return [", "    print('seen', prompt_tokens)\n    breakpoint()\n    return [0] or ["
    )
    (work / "life.py").write_text(code, encoding="utf-8")
    found = checkout.run("life.prefill-chunks", "--debug", "worked-examples", input="p 40 + 2\nc\n")
    assert found.returncode == 1, found.stderr
    assert "seen 10" in found.stdout
    assert "42" in found.stdout
    assert "expected [4, 4, 2], got [0]" in found.stdout


def test_repro_writes_a_script_that_shows_the_failure(checkout: Checkout) -> None:
    work = checkout.make_work()
    shutil.copy(WRONG_POOL, work / "paged_kv.py")
    found = checkout.run(POOL, "--repro", "holders", "--seed", "5")
    assert found.returncode == 0, found.stderr
    script = checkout.root / "work" / "repro_paged_kv_block_pool_holders.py"
    shown = subprocess.run(
        checkout.command(script=str(script)), capture_output=True, text=True, timeout=60, cwd="/"
    )
    assert shown.returncode == 0, shown.stderr
    assert "part.free(r0[0])" in shown.stdout
    assert "# expected ValueError" in script.read_text("utf-8")


def test_repro_of_a_check_inside_the_engine(checkout: Checkout) -> None:
    work = checkout.make_work()
    code = (ROOT / "tests/alternatives" / POOL / "list_and_counts.py").read_text("utf-8")
    code = code.replace("def num_free(self):", "def num_free(self):\n        1 / 0")
    (work / "paged_kv.py").write_text(code, encoding="utf-8")
    found = checkout.run(POOL, "--repro", "engine", "--seed", "5")
    assert found.returncode == 0, found.stderr
    script = checkout.root / "work" / "repro_paged_kv_block_pool_engine.py"
    shown = subprocess.run(
        checkout.command(script=str(script)), capture_output=True, text=True, timeout=60, cwd="/"
    )
    assert "ZeroDivisionError" in shown.stdout, shown.stderr
    assert "expected:" in shown.stdout
    assert "paged_kv.py:" in shown.stdout
    lines = [line for line in shown.stdout.splitlines() if "paged_kv.py" not in line]
    assert max(map(len, lines)) <= 110
    for name in (script.name, script.with_suffix(".case").name):
        assert name in found.stdout
        assert (script.parent / name).is_file()


def test_debug_names_the_mistake_and_shows_the_case_once(checkout: Checkout) -> None:
    work = checkout.make_work()
    shutil.copy(WRONG_POOL, work / "paged_kv.py")
    found = checkout.run(POOL, "--debug", "holders", "--seed", "5")
    assert "looks like: a second free goes unnoticed" in found.stdout
    assert found.stdout.count("part = BlockPool(") == 1
    assert "expected ValueError, but it returned None" in found.stdout
    assert "state before:" in found.stdout
    assert "<- call " in found.stdout
    code = (ROOT / "tests/mutants" / POOL / "free_drops_all_holders.py").read_text("utf-8")
    (work / "paged_kv.py").write_text(code, encoding="utf-8")
    found = checkout.run(POOL, "--debug", "engine", "--seed", "3")
    assert found.stdout.count("8 requests, 12 blocks of 4") == 1
    assert "the engine stopped in step 15: ValueError: block 1 is not in use" in found.stdout
    assert "schedules around step 15" in found.stdout


def test_debug_shows_the_whole_script_of_calls(checkout: Checkout) -> None:
    code = (ROOT / "tests/mutants" / CACHE / "first_to_last.py").read_text("utf-8")
    (checkout.make_work() / "prefix_cache.py").write_text(code, encoding="utf-8")
    found = checkout.run(CACHE, "--debug", "random", "--seed", "5")
    above, _, below = found.stdout.partition("-- end of your code's output")
    assert "more call" not in found.stdout
    assert above.count("cache = PrefixCache(") == 1
    assert above.count("cache.begin_step()") > 3
    assert "<- call " in below


def test_a_long_answer_is_shown_in_few_short_lines() -> None:
    tops = [[[7, 8, 9], [1.0 / 3, 0.25, 0.125]]] * 40
    answer = [{"tokens": list(range(n)), "tops": tops, "text": "x" * 500} for n in (4, 60)]
    lines = brief([*answer, *([answer[0]] * 20)])
    assert lines[1] == "  tokens: [0, 1, 2, 3]"
    assert lines[-1] == "... 12 more"
    assert max(map(len, lines)) <= 110
    assert len(lines) < 500


def test_no_colour_codes_in_a_pipe_and_no_letters_beyond_ascii_of_its_own(
    checkout: Checkout,
) -> None:
    work = checkout.make_work()
    (work / "life.py").write_text("raise ValueError('h\\u00e9las \\u2713')\n", encoding="utf-8")
    found = checkout.run("life.prefill-chunks", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert found.returncode == 1, found.stderr
    assert found.stdout.isascii()
    assert "\x1b" not in found.stdout
    assert "h\\xe9las" in found.stdout


def test_unreadable_progress_is_kept_aside(checkout: Checkout) -> None:
    checkout.make_work()
    record = checkout.root / "work" / "progress.json"
    record.write_text('{"exercises": [', encoding="utf-8")
    found = checkout.run("life.prefill-chunks")
    assert found.returncode == 3
    assert "can't be read" in found.stderr
    assert (checkout.root / "work" / "progress.unreadable.json").read_text("utf-8").startswith("{")
    assert json.loads(record.read_text("utf-8"))["version"] == 1


def test_progress_that_cannot_be_written_is_a_note(checkout: Checkout) -> None:
    checkout.make_work()
    (checkout.root / "work" / "progress.json").mkdir()
    found = checkout.run("life.prefill-chunks")
    assert found.returncode == 3
    assert "note:" in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_judge_leaves_no_process_behind(signum: int, checkout: Checkout) -> None:
    work = checkout.make_work()
    pid_file = checkout.root / "pid"
    code = (
        "import os\ndef prefill_chunks(*numbers):\n"
        f"    open({str(pid_file)!r}, 'w').write(str(os.getpid()))\n"
        "    while True: pass\n"
    )
    (work / "life.py").write_text(code, encoding="utf-8")
    judge = subprocess.Popen(
        checkout.command("life.prefill-chunks"), cwd=checkout.root,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wait_for(pid_file)
    judge.send_signal(signum)
    assert judge.wait(30) in (130, 143)
    assert gone(int(pid_file.read_text()))


def wait_for(path: Path) -> None:
    for _ in range(400):
        if path.exists() and path.read_text():
            return
        time.sleep(0.05)
    raise AssertionError(f"{path.name} never appeared")


def test_two_judges_at_once(checkout: Checkout) -> None:
    work = checkout.make_work()
    shutil.copy(RIGHT_CHUNKS, work / "life.py")
    judges = [
        subprocess.Popen(
            checkout.command("life.prefill-chunks"), cwd=checkout.root,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for _ in range(2)
    ]  # fmt: skip
    assert [judge.wait(60) for judge in judges] == [0, 0]
    for judge in judges:
        judge.communicate()
    assert json.loads((checkout.root / "work" / "progress.json").read_text("utf-8"))
