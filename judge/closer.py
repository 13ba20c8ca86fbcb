"""Owns the closer look at one failing case: `--debug` runs it here, `--repro` writes it down."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from judge import compare, practice, wire
from judge.api import Case, Check, CheckResult, Exercise
from judge.runner import Grader, Options, learner_source, reference_source
from judge.sandbox import ROOT, ChildFailed, Worker
from judge.workers import Workers

if TYPE_CHECKING:
    from judge.report import Reporter

ATTEMPT = '''
def attempt(call):
    """What a call returns or raises, printed."""
    try:
        value = call()
    except Exception as error:
        value = error
    print("   ", repr(value))
    return value

'''


def debug(exercise: Exercise, folder: practice.Folder, options: Options, reporter: Reporter) -> int:
    """Run the failing case of a check (else its first) here: prints visible, `breakpoint()` works.

    Returns 0 if its answer is right, 1 if not.
    """
    check, found, case = failing_case(exercise, folder, options)
    torch = bool({"torch", "cuda", "tiny", "smollm2"} & set(check.needs)) or exercise.needs_torch
    if found.case is None:
        reporter.line(f"{check.name} passes with seed {options.seed}; this is its first case")
    reporter.line(f"case {found.case_number} of {check.name}, seed {options.seed}: {case.label}")
    for line in case_lines(check, case):
        reporter.line(f"  {line}")
    reporter.line("from here on your code prints; breakpoint() in it stops here, Ctrl-C ends it")
    source = learner_source(exercise, folder.path / exercise.file)
    device = "cuda" if torch and options.device == "cuda" else "cpu"
    with Worker(replace(source, torch=torch, device=device), foreground=True) as worker:
        worker.start()
        try:
            worker.ready()
            worker.ask(check.execute, case.payload)
            got = worker.answer(0.0)  # a foreground worker has no time limit
        except ChildFailed as failure:
            reporter.line("-- end of your code's output")
            for line in (
                *failure.lines,
                *([compare.show(failure.raised)] if failure.raised else ()),
            ):
                reporter.line(f"  {line}")
            return 1
    reporter.line("-- end of your code's output")
    with Workers() as workers:
        reference = workers.reference(
            replace(reference_source(exercise), torch=torch, device=device)
        )
        (expected,) = reference.answers(check, [case])
    difference = Grader(exercise, source, options).judge(check, case, expected, got)
    if difference is None:
        reporter.line("  the answer is right")
        return 0
    lines = list(difference.lines)
    if check.look is not None and found.lines:  # graded before, with further runs
        lines = [*found.lines, *(found.schedules.lines if found.schedules else ())]
    for line in unsaid(lines, check, case):
        reporter.line(f"  {line}")
    if found.mistake:
        reporter.line(f"  looks like: {found.mistake}")
    return 1


def unsaid(lines: list[str], check: Check, case: Case) -> list[str]:
    """Lines of a verdict without the case itself, which stands above the code's output."""
    said = case_lines(check, case)
    found = []
    for line in lines:
        if line.endswith(case.label) or any(line.startswith(f"{call}  -> ") for call in said):
            continue
        if check.script is not None and line.startswith("  ... "):  # nothing is left out above
            continue
        line = line.removeprefix(f"{case.label}: ")
        if line not in said:
            found.append(line)
    return found


def repro(exercise: Exercise, folder: practice.Folder, options: Options, reporter: Reporter) -> int:
    """Write the failing case of a check as a script that needs no judge to be understood."""
    check, found, case = failing_case(exercise, folder, options)
    if found.case is None:
        reporter.line(f"{check.name} passes with seed {options.seed}: there is nothing to repeat; "
                      "give the seed of the failure with --seed")  # fmt: skip
        return 1
    name = f"repro_{exercise.id}_{check.name}".replace(".", "_").replace("-", "_")
    path = folder.records / f"{name}.py"
    text = header(exercise, check, found, options.seed, folder)
    lines = python_lines(check, case)
    if lines:
        text += script_body(check, case, found, lines)
    else:
        case_file = path.with_suffix(".case")
        case_file.write_bytes(wire.encode({"payload": case.payload, "expected": found.expected}))
        text += generic_body(exercise, check, folder, case_file.name)
    path.write_text(text, encoding="utf-8")
    beside = "" if lines else f", and its case beside it in {practice.shown(case_file)}"
    reporter.line(f"wrote {practice.shown(path)}{beside}")
    reporter.line(f"run it with: python {practice.shown(path)}")
    return 0


def failing_case(
    exercise: Exercise, folder: practice.Folder, options: Options
) -> tuple[Check, CheckResult, Case]:
    """Grade one check; returns it, its result and the case that failed (or its first).

    Raises ValueError unless `options.only` names exactly one check.
    """
    grader = Grader(exercise, learner_source(exercise, folder.path / exercise.file), options)
    checks = grader.selected()
    if len(checks) > 1:
        names = ", ".join(check.name for check in checks)
        raise ValueError(f"{options.only!r} fits several checks; name one of {names}")
    found = grader.run().results[0]
    return checks[0], found, found.case or grader.cases(checks[0])[0]


def python_lines(check: Check, case: Case) -> list[str]:
    """The case as Python, where it is a call or a script of calls; else nothing."""
    if check.execute == "judge.execute:call_function":
        return [case.label]
    if check.execute == "judge.execute:call_script":
        return compare.script_lines(case.payload)
    return []


def case_lines(check: Check, case: Case) -> list[str]:
    """The whole case to read: `python_lines`, or what the exercise itself writes of it."""
    return list(check.script(case)) if check.script is not None else python_lines(check, case)


def header(
    exercise: Exercise, check: Check, found: CheckResult, seed: int, folder: practice.Folder
) -> str:
    """Imports of a repeated case; paths are relative to the script, so both can move together."""
    root = os.path.relpath(ROOT, folder.records)
    what = "\n".join(f"    {line}" for line in found.lines).replace('"""', "'''")
    return (
        f'"""One failing case of the judge: {exercise.id} / {check.name}, seed {seed}.\n\n'
        f'{what}\n"""\n\n'
        "import sys\nfrom pathlib import Path\n\n"
        "HERE = Path(__file__).resolve().parent\n"
        f"sys.path.insert(0, str((HERE / {root!r}).resolve()))\n"
        f"sys.path.append(str(HERE / {folder.path.name!r}))\n\n"
        f"from {Path(exercise.file).stem} import {', '.join(exercise.symbols)}  # noqa: E402\n"
    )


def script_body(check: Check, case: Case, found: CheckResult, lines: list[str]) -> str:
    """The calls, with what is expected of each as a comment."""
    text = ATTEMPT
    if check.execute == "judge.execute:call_function":
        wanted = found.expected["value"] if isinstance(found.expected, dict) else found.expected
        return (
            text
            + f"print({lines[0]!r})\nattempt(lambda: {lines[0]})\n"
            + (f"print('expected')\nprint('   ', {compare.show(wanted)!r})\n")
        )
    expected = found.expected if isinstance(found.expected, list) else []
    for number, line in enumerate(lines):
        name, _, call = line.partition(" = ")
        wanted = compare.show(expected[number]["value"]) if number < len(expected) else "?"
        comment = f"  # expected {wanted}" if number else ""
        text += f"print({line!r})\n{name} = attempt(lambda: {call}){comment}\n"
    return text


def generic_body(exercise: Exercise, check: Check, folder: practice.Folder, case_file: str) -> str:
    """For a case that is no plain call: its payload and what is expected lie beside the script."""
    parts = ", ".join(f"{symbol!r}: {symbol}" for symbol in exercise.symbols)
    return (
        "from judge import wire  # noqa: E402\n"
        "from judge.api import Context, resolve  # noqa: E402\n"
        "from judge.brief import brief  # noqa: E402\n"
        "from judge.execute import OWN_FOLDER  # noqa: E402\n\n"
        f"OWN_FOLDER['path'] = str(HERE / {folder.path.name!r})\n"
        f"data = (HERE / {case_file!r}).read_bytes()\n"
        "text, blob = wire.sizes(data[: wire.HEADER.size])\n"
        "body = data[wire.HEADER.size :]\n"
        f"arrays = {'wire.torch_tensor' if exercise.needs_torch or check.needs else 'None'}\n"
        "case = wire.decode(body[:text], body[text:], arrays)\n"
        f"context = Context(slot={exercise.slot!r})\n"
        f"run = resolve({check.execute!r})\n"
        f"got = run({{{parts}}}, case['payload'], context)\n"
        "for title, answer in (('your part:', got), ('expected:', case['expected'])):\n"
        "    print(title)\n"
        "    for line in brief(wire.copy(answer)):\n"
        "        print('   ', line)\n"
    )
