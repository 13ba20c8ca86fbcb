"""Owns what the judge says in a terminal, and as JSON. Plain words first, colour only as a help."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from judge import practice
from judge.api import FAILED, CheckResult, ExerciseResult, Status
from judge.compare import show
from judge.wire import Frame

LABELS: dict[Status, str] = {
    "passed": "PASS",
    "wrong": "FAIL",
    "error": "ERROR",
    "timeout": "TIMEOUT",
    "crashed": "CRASH",
    "not started": "NOT STARTED",
    "skipped": "SKIPPED",
    "not run": "NOT RUN",
}
STYLES = {"PASS": "green", "SKIPPED": "yellow", "NOT RUN": "yellow", "NOT STARTED": "yellow",
          "POLICY": "yellow", "-": "yellow"}  # fmt: skip
SCRIPT = "python practice/judge.py"
ALLOWED = "your part is right; here it differs from {}, which is allowed:"


class Reporter:
    """Prints verdicts line by line. With `plain` no colour is used; `verbose` shows all frames."""

    def __init__(
        self, stream: TextIO | None = None, *, plain: bool = False, verbose: bool = False
    ) -> None:
        from rich.console import Console

        self.verbose = verbose
        target = stream or sys.stdout
        if hasattr(target, "reconfigure"):  # a terminal that lacks a character shows its escape
            target.reconfigure(errors="backslashreplace")
        no_color = plain or bool(os.environ.get("NO_COLOR")) or not target.isatty()
        self.console = Console(
            file=target, no_color=no_color, color_system=None if no_color else "auto",
            highlight=False, soft_wrap=True, markup=False, emoji=False,
        )  # fmt: skip

    def line(self, text: str = "", style: str | None = None) -> None:
        self.console.print(text, style=style)

    def labelled(self, label: str, text: str) -> None:
        """A line that starts with a coloured word."""
        from rich.text import Text

        style = "bold " + STYLES.get(label.strip(), "red")
        self.console.print(Text.assemble((label, style), "  ", text))

    def code(self, text: str) -> None:
        """Python, in colours where the terminal has them; the same characters everywhere."""
        from rich.syntax import Syntax

        if self.console.color_system is None:
            self.line(text)
        else:
            self.console.print(Syntax("", "python", theme="ansi_dark").highlight(text), end="")

    def check(self, result: CheckResult) -> None:
        """One line per check, as soon as it is known."""
        label = LABELS[result.status]
        if result.check.kind == "policy" and result.status in FAILED:
            label = "POLICY"
        note = ""
        if label == "POLICY":
            note = " (differs, which is allowed)"
        elif result.status == "not started":
            note = f" ({'; '.join([f'{result.lines[0]} is a stub', *result.lines[1:]])})"
        elif result.status in ("skipped", "not run") or (
            result.status == "passed" and result.lines
        ):
            note = f" ({result.lines[0]})"
        self.labelled(f"  {label:<11}", f"{result.check.name:<16} {result.check.title}{note}")

    def failure(self, result: ExerciseResult, hints_shown: int) -> None:
        """The first failure of an exercise, in full."""
        failed = result.first_failure
        if failed is None:
            return
        exercise = result.exercise.id
        policy = failed.check.kind == "policy"
        self.line()
        self.labelled(
            "POLICY" if policy else LABELS[failed.status], f"{exercise} / {failed.check.title}"
        )
        if policy:
            self.line(f"  {ALLOWED.format(failed.check.follows)}")
        for line in explain(result, failed, verbose=self.verbose):
            self.line(f"  {line}")
        if policy:
            return
        if hints_shown < 3:
            self.line(f"  hint {hints_shown + 1} of 3: {SCRIPT} {exercise} --hint")
        else:
            self.line(f"  all hints are shown; the reference's code: {SCRIPT} {exercise} "
                      "--solution")  # fmt: skip
        if failed.case is not None:
            self.line(f"  look inside: {SCRIPT} {exercise} --debug {failed.check.name}"
                      f" --seed {result.seed}")  # fmt: skip
        self.line(f"  repeat: {SCRIPT} {exercise} --only {failed.check.name} --seed {result.seed}")

    def summary(self, result: ExerciseResult) -> None:
        """The last line of an exercise: how many passed, and what was not run."""
        label = LABELS[result.status] if result.status != "skipped" else "NOT COMPLETE"
        self.labelled(label, f"{result.exercise.id}: {counts(result.results)}; "
                      f"seed {result.seed}, {result.seconds:.1f} s")  # fmt: skip
        for note in result.notes:
            self.line(f"  note: {note}")


def counts(results: Sequence[CheckResult]) -> str:
    """ "N of M checks passed; K not run". Never says that all passed while some were not run."""
    run = [r for r in results if r.status not in ("skipped", "not run")]
    passed = sum(r.status == "passed" for r in run)
    text = f"{passed} of {len(run)} checks passed"
    policy = sum(r.status in FAILED and r.check.kind == "policy" for r in run)
    if policy:
        what = "policy check differs" if policy == 1 else "policy checks differ"
        text += f" ({policy} {what}, which is allowed)"
    left_out = len(results) - len(run)
    return f"{text}; {left_out} not run" if left_out else text


def explain(result: ExerciseResult, failed: CheckResult, *, verbose: bool) -> list[str]:
    """What went wrong, the schedules, where in the learner's code, what it printed, its name."""
    lines = [*failed.lines, *(failed.schedules.lines if failed.schedules else ())]
    frames = [f for f in failed.frames if verbose or f.own]
    for frame in frames[-12:] if verbose else frames[-4:]:
        lines.append(f"  {place(frame)} in {frame.function}: {frame.source}")
    printed = [line for line in failed.output.splitlines() if line.strip()]
    if printed and failed.status != "crashed":
        lines.append(f"it printed{' (end)' if len(printed) > 5 else ''}:")
        lines += [f"  | {line[:160]}" for line in printed[-5:]]
    if failed.mistake:
        lines.append(f"looks like: {failed.mistake}")
    return lines


def place(frame: Frame) -> str:
    return f"{practice.shown(Path(frame.file))}:{frame.line}"


def as_data(result: ExerciseResult) -> dict[str, Any]:
    """A verdict as plain data, for --json and for other tools."""
    return {
        "exercise": result.exercise.id,
        "status": result.status,
        "file": result.file,
        "line": result.line,
        "seed": result.seed,
        "seconds": round(result.seconds, 3),
        "checks": [
            {
                "name": found.check.name,
                "title": found.check.title,
                "kind": found.check.kind,
                "status": found.status,
                "seconds": round(found.seconds, 3),
                "case": found.case.label if found.case else None,
                "lines": found.lines,
                "schedules": list(found.schedules.lines) if found.schedules else [],
                "mistake": found.mistake,
                "expected": show(found.expected, 2000) if found.status in FAILED else None,
                "got": show(found.got, 2000) if found.status in FAILED else None,
                "frames": [[f.file, f.line, f.function, f.source] for f in found.frames if f.own],
            }
            for found in result.results
        ],
    }
