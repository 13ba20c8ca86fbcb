"""Owns what a chapter shows of the judge: `grade`, `predict` and `predictions`.

Everything is static HTML with words in it, legible without a kernel and by a screen reader. Nothing
that changes from run to run is shown: no times, no seeds, no paths of this machine.
"""

from __future__ import annotations

import html
import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from judge import practice
from judge.api import FAILED, Exercise, ExerciseResult
from judge.doctor import missing_models
from judge.exercises import find
from judge.models import chosen
from judge.progress import Progress, write_atomically
from judge.report import ALLOWED, LABELS, SCRIPT, counts
from judge.runner import Grader, Options, learner_source
from judge.schedule_table import records
from judge.workers import Workers
from mini_engine.show.schedule_diff import schedule_diff

SEED = 0  # fixed, so that a chapter's output is the same in every run
STYLE = (
    "border-collapse:collapse;background:#ffffff;color:#1a1a1a;font-size:90%;margin:4px 0;"
    "border:1px solid #767676"
)
CELL = "padding:3px 10px;text-align:left;border:1px solid #c8c8c8;color:#1a1a1a;background:#ffffff"
CAPTION = "text-align:left;font-weight:bold;color:#1a1a1a;background:#ffffff;padding:3px 10px"
COLOURS = {"PASS": "#00563f", "FAIL": "#8f1d14", "ERROR": "#8f1d14", "TIMEOUT": "#8f1d14",
           "CRASH": "#8f1d14"}  # fmt: skip


def grade(name: str, *, model: str = "tiny") -> None:
    """Grade an exercise, a topic or a chapter and show the verdicts as tables.

    The file is read afresh, in a process of its own. `model` "smollm2" also runs the checks on
    SmolLM2; the path of a model's folder runs them on that model.
    """
    models, real = chosen(model)
    folder = practice.folder()
    options = Options(seed=SEED, models=models, real=real, missing=missing_models(real))
    progress = Progress(folder)
    with Workers() as workers:
        for exercise in find(name):
            file = folder.path / exercise.file
            code = progress.code(exercise)
            result = Grader(exercise, learner_source(exercise, file), options, workers).run()
            if folder.own:
                progress.record(result, code, smollm2=real is None)
                progress.save()
            _display(verdict_html(result))


def verdict_html(result: ExerciseResult) -> str:
    """One exercise as a table: a row per check, then what went wrong first."""
    exercise = result.exercise
    rows = []
    for found in result.results:
        label = LABELS[found.status]
        if found.check.kind == "policy" and found.status in FAILED:
            label = "POLICY DIFFERS"
        rows.append((label, found.check.name, found.check.title))
    label = LABELS[result.status] if result.status != "skipped" else "NOT COMPLETE"
    caption = f"{exercise.id}: {label}, {counts(result.results)}"
    text = _table(caption, ("verdict", "check", "what must hold"), rows)
    if result.status == "not started":
        lines = [f"not started yet: open practice/{exercise.file}, {_symbols(exercise)}"]
        stub = next(found for found in result.results if found.status == "not started")
        if len(stub.lines) > 1:  # that of another exercise, which this one calls
            lines = [f"it calls {stub.lines[0]}, which is a stub: {stub.lines[1]}"]
        text += _note(lines)
    elif result.first_failure is not None:
        text += _note(_failure_lines(result)) + _schedules_html(result)
    return text


def _symbols(exercise: Exercise) -> str:
    return ", ".join(exercise.symbols)


def _failure_lines(result: ExerciseResult) -> list[str]:
    failed = result.first_failure
    assert failed is not None
    policy = failed.check.kind == "policy"
    lines = [f"{'POLICY' if policy else LABELS[failed.status]}: {failed.check.title}"]
    if policy:
        lines.append(ALLOWED.format(failed.check.follows))
    lines += failed.lines
    for frame in [frame for frame in failed.frames if frame.own][-3:]:
        lines.append(f"  {Path(frame.file).name}:{frame.line} in {frame.function}: {frame.source}")
    if failed.mistake:
        lines.append(f"looks like: {failed.mistake}")
    if policy:  # nothing to mend, so nothing to be pushed to
        return lines
    lines.append(f"next hint: {SCRIPT} {result.exercise.id} --hint")
    lines.append(f"repeat: {SCRIPT} {result.exercise.id} --only {failed.check.name} --seed {SEED}")
    return lines


def _schedules_html(result: ExerciseResult) -> str:
    """Both schedules as a picture, where the part ran inside the engine."""
    found = result.first_failure.schedules if result.first_failure else None
    if found is None:
        return ""
    try:
        expected, got = records(found.expected), records(found.got)
    except ValueError:  # a part of the learner's made it; as text it has been shown
        return _note(found.lines)
    return schedule_diff(expected, got, found.step, stopped=found.stopped).html


def predict(
    key: str, question: str, choices: Sequence[str] | None = None, *, unit: str = ""
) -> Any:
    """Ask for a prediction before the next cell shows the answer; stores it, never waits for it.

    With `choices` one of them is picked, without them a number is typed (in `unit`). The answer is
    kept in predictions.json beside the practice folder under `key`. Returns the widget to show.
    """
    _display(
        f'<p style="margin:4px 0"><strong>Predict:</strong> {html.escape(question)}'
        f"{_choices_html(choices, unit)}</p>"
    )
    try:
        import ipywidgets
    except ImportError:  # the question is on the page all the same
        return None
    layout = {"width": "max-content", "min_height": "34px"}
    if choices:
        widget = _described(ipywidgets.RadioButtons)(
            options=list(choices), value=None, description="Yours:", layout=layout
        )
    else:
        widget = _described(ipywidgets.Text)(
            placeholder=f"a number{' in ' + unit if unit else ''}, then Enter",
            description="Yours:",
            continuous_update=False,
        )
    widget.observe(_storing(key, question, widget), names="value")
    return widget


def _described(widget_class: Any) -> Any:
    """The class with a text form for viewers without widgets; it is what a saved chapter shows."""
    text = "<a field for your prediction; run this cell to fill it in>"
    return type(widget_class.__name__, (widget_class,), {"__repr__": lambda self: text})


def _choices_html(choices: Sequence[str] | None, unit: str) -> str:
    if not choices:
        return f" (a number{' in ' + html.escape(unit) if unit else ''})"
    return " (" + " / ".join(html.escape(choice) for choice in choices) + ")"


def _storing(key: str, question: str, widget: Any) -> Callable[[Any], None]:
    def store(change: Any) -> None:
        problem = store_prediction(key, question, change["new"])
        widget.description = "Yours:" if problem is None else "Not saved:"
        widget.tooltip = problem

    return store


def predictions_path() -> Path:
    return practice.folder().records / "predictions.json"


def store_prediction(key: str, question: str, answer: Any) -> str | None:
    """Keep an answer; returns why it could not be kept, or None."""
    try:
        path = predictions_path()
        known = stored_predictions()
        known[key] = {"question": question, "answer": answer}
        write_atomically(path, known)
    except (OSError, ValueError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def stored_predictions() -> dict[str, Any]:
    """Key -> question and answer. Raises ValueError for a file that is no record of predictions."""
    path = predictions_path()
    if not path.exists():
        return {}
    known = json.loads(path.read_text("utf-8"))
    if not isinstance(known, dict):
        raise ValueError(f"{path.name} does not hold predictions; move it away to start afresh")
    return known


def predictions(outcomes: Mapping[str, tuple[str, Any]]) -> None:
    """The recap: what was predicted beside what happened.

    `outcomes` maps keys to (question in short, what happened), in the order of the rows.
    """
    try:
        known = stored_predictions()
    except (OSError, ValueError) as error:
        known = {}
        _display(_note([f"predictions can't be read: {error}"]))
    rows = []
    for key, (question, outcome) in outcomes.items():
        entry = known.get(key)
        answer = entry.get("answer") if isinstance(entry, dict) else None
        rows.append(
            (question, "no prediction" if answer in (None, "") else str(answer), str(outcome))
        )
    _display(_table("Your predictions", ("question", "you said", "it was"), rows))


def _table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """An accessible table: caption, column headers with scope, words in every cell."""
    parts = [f'<table style="{STYLE}"><caption style="{CAPTION}">'
             f"{html.escape(caption)}</caption><thead><tr>"]  # fmt: skip
    parts += [f'<th scope="col" style="{CELL}">{html.escape(name)}</th>' for name in head]
    parts.append("</tr></thead><tbody>")
    for row in rows:
        parts.append("<tr>")
        for cell in row:
            colour = COLOURS.get(cell)
            style = f"{CELL};color:{colour};font-weight:bold" if colour else CELL
            parts.append(f'<td style="{style}">{html.escape(cell)}</td>')
        parts.append("</tr>")
    parts.append("</tbody></table>")
    return "".join(parts)


def _note(lines: Sequence[str]) -> str:
    body = html.escape("\n".join(lines))
    return (
        '<pre style="background:#f6f6f6;color:#1a1a1a;border-left:4px solid #767676;'
        f'padding:6px 10px;white-space:pre-wrap">{body}</pre>'
    )


def _display(text: str) -> None:
    show = importlib.import_module("IPython.display")
    show.display(show.HTML(text))
