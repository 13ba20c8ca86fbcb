"""Runs the steps of `make test`, each with its wall time, and ends with one summary.

    python tools/checks.py all
    python tools/checks.py STEP [STEP ...]

All steps run even if one fails; the exit code is 1 if any did. Tests run offline and on the CPU.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTEST = ["-m", "pytest", "-q", "-rs", "--durations=8"]
STEPS: dict[str, list[list[str]]] = {
    "lint": [["-m", "ruff", "check", "."], ["-m", "ruff", "format", "--check", "."]],
    "types": [["-m", "mypy"]],
    "unit": [[*PYTEST, "-n", "2", "--dist", "loadscope"]],
    "selftest": [["-m", "judge.selftest", "--seeds", "2"]],
    "notebooks": [
        ["tools/notebooks.py", "--check"],
        [*PYTEST, "--nbval", "chapters", "-n", "2", "--dist", "loadscope"],
    ],
    "selftest-full": [["-m", "judge.selftest", "--seeds", "20"]],
    "gpu": [[*PYTEST, "-m", "gpu"]],
}
ALL = ("lint", "types", "unit", "selftest", "notebooks")
COUNT = re.compile(r"(\d+) (passed|failed|skipped|xfailed|xpassed|errors?|deselected)")
PYTEST_SUMMARY = re.compile(r"^(=+ )?\d+ \w+.* in [\d.]+s( \([\d:]+\))?( =+)?$")
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def main() -> int:
    """Run the named steps and print the summary; returns the exit code."""
    names = sys.argv[1:] or ["all"]
    names = list(ALL) if names == ["all"] else names
    unknown = [name for name in names if name not in STEPS]
    if unknown:
        sys.exit(f"no step {', '.join(unknown)}; there are: all, {', '.join(STEPS)}")
    began = time.monotonic()
    total: Counter[str] = Counter()
    table = []
    for name in names:
        step_began = time.monotonic()
        failed, counts = run_step(name)
        seconds = time.monotonic() - step_began
        total += counts
        details = ", ".join(f"{count} {word}" for word, count in counts.items())
        table.append(f"{name:<14}{'FAILED' if failed else 'passed':<8}{seconds:7.1f} s   {details}")
        print(f"--- {table[-1]}", flush=True)
    print("\n" + "\n".join(table))
    seconds = time.monotonic() - began
    order = ("failed", "error", "passed", "skipped", "xfailed", "xpassed")
    words = ", ".join(f"{total[word]} {word}" for word in order if total[word])
    print(f"==== {words} in {seconds:.2f}s ====", flush=True)
    return 1 if total["failed"] or total["error"] else 0


def run_step(name: str) -> tuple[bool, Counter[str]]:
    """Run the commands of a step; (whether it failed, what it counted).

    pytest counts its tests; every other command counts as one. A pytest that fails without saying
    what failed (no tests, a broken conftest) counts as one error: it must not look like success.
    """
    counts: Counter[str] = Counter()
    failed = False
    for arguments in STEPS[name]:
        print(f"\n--- {name}: python {' '.join(arguments)}", flush=True)
        code, last_summary = run(arguments)
        found = parse_summary(last_summary) if "pytest" in arguments else Counter()
        if not found:
            found = Counter(passed=1) if code == 0 else Counter(failed=1)
        elif code and not (found["failed"] or found["error"]):
            found["error"] += 1
        counts += found
        failed |= code != 0
    return failed, counts


def run(arguments: list[str]) -> tuple[int, str]:
    """Run this Python, pass its output on as it comes; (exit code, last pytest summary line)."""
    environment = dict(
        os.environ,
        HF_HUB_OFFLINE="1",
        OMP_WAIT_POLICY="PASSIVE",  # threads that spin while they wait slow busy machines down
        PYTHONUNBUFFERED="1",
        JUPYTER_PREFER_ENV_PATH="1",
        # Two test processes on two cores: one thread each, or they take each other's time.
        OMP_NUM_THREADS=os.environ.get("OMP_NUM_THREADS", "1"),
    )
    if "gpu" not in arguments:
        environment["CUDA_VISIBLE_DEVICES"] = ""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    assert process.stdout is not None
    summary = ""
    for line in process.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        plain = ANSI.sub("", line).strip()
        if PYTEST_SUMMARY.match(plain):
            summary = plain
    return process.wait(), summary


def parse_summary(line: str) -> Counter[str]:
    """The counts in a pytest summary line, such as `3 passed, 1 skipped in 2.10s`."""
    counts: Counter[str] = Counter()
    for number, word in COUNT.findall(line):
        if word != "deselected":
            counts["error" if word == "errors" else word] += int(number)
    return counts


if __name__ == "__main__":
    sys.exit(main())
