"""Owns `--mine`: the engine made of every part that the learner has passed, against the reference.

A part counts if it passed with the code as it is now; the reference fills in for all others.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge import compare, engine_report, practice, tensor_checks
from judge.api import Exercise
from judge.doctor import missing_models
from judge.exercises import EXERCISES
from judge.models import REAL, chosen, tokenizer_file
from judge.progress import Progress
from judge.reference import LIMIT_S, JudgeFault
from judge.report import SCRIPT, Reporter, place
from judge.sandbox import ChildFailed, Source, Worker
from judge.wire import Raised
from mini_engine.learner_parts import LEARNER_PARTS, LearnerPart, placed

PROMPTS = ("What is a KV cache?", "Name three colours.", "Why is the sky blue?")
TOKENS = ([1, 2, 3], [7] * 30, [5, 9])  # for a model without a tokenizer
MAX_TOKENS = 24
# The last prompt is not answered greedily, so that every link of a sampler has something to do.
DRAWN = {"temperature": 0.8, "top_p": 0.95, "presence_penalty": 0.5, "seed": 7}
EXECUTE = "judge.mine_run:answer"
SLOWER = 20.0  # a learner's engine may take this many times what the reference took
LEAST_S = 60.0


@dataclass(frozen=True)
class Whose:
    """One part of the engine: its row, and whether it is the learner's.

    `exercise` is the one that it still waits for, or the last of those that it needed.
    """

    row: LearnerPart
    exercise: Exercise
    passed: bool


def mine(args: argparse.Namespace, progress: Progress, reporter: Reporter) -> int:
    """Build it, let it answer, compare. Returns 0 if all tokens are the reference's, 1 if not, 3 if
    no part has passed yet, 4 where the model is missing.
    """
    parts = whose(progress)
    _show_parts(parts, progress, reporter)
    rows = [part.row for part in parts if part.passed]
    if not rows:
        reporter.line(f"no part of yours has passed yet; what is next: {SCRIPT}")
        return 3
    _, real = chosen(args.model)
    model = str(real.folder) if real else args.model or REAL
    missing = missing_models(real)
    if model in missing:
        reporter.line(f"your engine was not run: {missing[model]}")
        return 4
    prompts: Sequence[Any] = PROMPTS if tokenizer_file(model) else TOKENS
    payload: dict[str, Any] = {
        "folder": str(progress.folder.path.resolve()), "symbols": [], "model": model,
        "prompts": list(prompts), "max_tokens": MAX_TOKENS,
        "params": [{}] * (len(prompts) - 1) + [DRAWN],
    }  # fmt: skip
    symbols = [row.symbol for row in placed(rows)]
    device = "cuda" if args.device == "cuda" else "cpu"
    try:
        expected, got = run(payload, symbols, device)
    except ChildFailed as failure:
        _failed(failure, reporter)
        return 1
    if isinstance(got, Raised):
        reporter.labelled("ERROR", f"your engine stopped: {compare.show(got)}")
        for line in compare.about_raised(got):
            reporter.line(f"  {line}")
        for frame in [frame for frame in got.frames if args.verbose or frame.own][-4:]:
            reporter.line(f"  {place(frame)} in {frame.function}: {frame.source}")
        return 1
    return _verdict(payload, expected, got, len(symbols), reporter)


def whose(progress: Progress) -> list[Whose]:
    """Every row of the table with its exercise, in the order of the course."""
    found = []
    for row in LEARNER_PARTS:
        mine = [e for e in EXERCISES if e.file == row.file and row.symbol in e.symbols]
        needed = [e for e in mine if e.in_engine]
        todo = [e for e in needed if progress.status(e) != "passed"]
        found.append(Whose(row, (todo or needed[-1:])[0], not todo))
    return found


def run(payload: dict[str, Any], symbols: list[str], device: str) -> tuple[Any, Any]:
    """What the reference and the learner's engine answer, each from a process of its own.

    Raises ChildFailed if the learner's gives no answer, JudgeFault if the reference's does not.
    """
    source = Source(torch=True, device=device)
    with Worker(source) as ours, Worker(source) as theirs:
        ours.start()
        theirs.start()
        theirs.ask(EXECUTE, {**payload, "symbols": symbols})  # computes beside the reference
        expected, seconds = _reference(ours, payload)
        return expected, theirs.answer(max(LEAST_S, SLOWER * seconds))


def _reference(worker: Worker, payload: dict[str, Any]) -> tuple[Any, float]:
    try:
        worker.ready()
        started = time.monotonic()
        worker.ask(EXECUTE, payload)
        expected = worker.answer(LIMIT_S)
    except ChildFailed as failure:
        raise JudgeFault(f"the reference engine failed: {'; '.join(failure.lines)}") from failure
    if isinstance(expected, Raised):
        raise JudgeFault(f"the reference engine failed: {compare.show(expected)}")
    return expected, time.monotonic() - started


def difference(expected: Any, got: Any, model: str) -> tuple[list[str], str]:
    """Lines on the first token that differs (none if all is well), and a word on near ties."""
    tokens, tops = expected["tokens"], expected["tops"]
    have = got.get("tokens") if isinstance(got, dict) else None
    if not isinstance(have, list):
        return ["there is no list of tokens"], ""
    number = tensor_checks.first_difference(tokens, have, tops)
    if number is None:
        if tokens == have:
            return [], ""
        near = next(i for i, (a, b) in enumerate(zip(tokens, have, strict=False)) if a != b)
        return [], f"equal up to output {near}, where two tokens are a near tie"
    words = engine_report.pieces(model)
    theirs = got.get("tops", [])
    want, found = (part[number] if number < len(part) else None for part in (tokens, have))
    lines = [
        f"output {number}: {engine_report.expected_got(want, found, words)}",
        *engine_report.top_lines(tops, theirs, number, words, tensor_checks.TIE),
    ]
    return lines, ""


def _show_parts(parts: list[Whose], progress: Progress, reporter: Reporter) -> None:
    used = placed([part.row for part in parts if part.passed])
    reporter.line(f"your engine, made of {progress.folder.describe()}", "bold")
    for part in parts:
        why = "passed" if part.passed else progress.status(part.exercise)
        if part.passed and part.row not in used:
            why = "passed; a later part of yours fills the same slot"
        label = "yours" if part.row in used else "reference"
        reporter.line(f"  {label:<10} {part.row.slot:<12} {part.exercise.id} ({why})")
    others = "KV tensors"
    reporter.line(f"  {'reference':<10} {others}")
    reporter.line()


def _failed(failure: ChildFailed, reporter: Reporter) -> None:
    reporter.labelled("ERROR", f"your engine gave no answer ({failure.status})")
    for line in failure.lines:
        reporter.line(f"  {line}")
    if failure.raised is not None:
        reporter.line(f"  {compare.show(failure.raised)}")


def _verdict(
    payload: dict[str, Any], expected: Any, got: Any, count: int, reporter: Reporter
) -> int:
    wrong = 0
    for number, (prompt, want) in enumerate(zip(payload["prompts"], expected, strict=True)):
        have = got[number] if isinstance(got, list) and number < len(got) else None
        lines, tie = difference(want, have, payload["model"])
        asked = ", ".join(f"{k} {v}" for k, v in payload["params"][number].items())
        reporter.line(f"> {prompt}" + (f"  ({asked})" if asked else ""))
        if isinstance(have, dict) and isinstance(have.get("text"), str) and have["text"]:
            reporter.line(have["text"])
        if lines:
            wrong += 1
            reporter.labelled("FAIL", "it differs from the reference's answer")
            for line in lines:
                reporter.line(f"  {line}")
        else:
            reporter.labelled("PASS", tie or f"{len(want['tokens'])} tokens, the reference's")
        reporter.line()
    total = len(expected)
    parts = "1 part" if count == 1 else f"{count} parts"
    same = f"{total - wrong} of {total} answers are the reference's, token by token"
    reporter.labelled("FAIL" if wrong else "PASS", f"your engine, with {parts} of yours: {same}")
    if not wrong:
        folder = practice.shown(Path(payload["folder"]))
        reporter.line(f'chat with it: python -m mini_engine --parts {folder} "What is a KV cache?"')
        reporter.line("  that takes every part that you have written, passed or not")
    return 1 if wrong else 0
