"""Owns the proof that the sliders show the static figures and need nothing until they are made."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mini_engine import show
from mini_engine.trace import StepRecord
from tests.show.traces import chunked, sharing

widgets = pytest.importorskip("ipywidgets")


def parts(box: object) -> tuple[object, object]:
    slider, picture = box.children[-2:]  # type: ignore[attr-defined]
    return slider, picture


def test_slider_shows_the_static_figure_of_each_step() -> None:
    records = sharing()
    slider, picture = parts(show.step_slider(records, show.block_map, block_size=16))
    assert slider.description == "step"
    for record in records:
        slider.value = record.step
        static = show.block_map(records, record.step, block_size=16)
        assert picture.value == static.html
    assert picture.layout.height == "380px"


def test_slider_has_one_stable_line_of_text() -> None:
    box = show.step_slider(chunked(), show.timeline)
    plain = box._repr_mimebundle_()["text/plain"]
    assert plain == "<a slider over steps 0 to 7; run this cell to move it>"


def test_own_prompt_runs_and_redraws() -> None:
    asked: list[str] = []

    def trace(prompt: str) -> list[StepRecord]:
        asked.append(prompt)
        if not prompt:
            raise ValueError("request 'x' has an empty prompt; at least 1 token is needed")
        return sharing()

    box = show.step_slider(chunked(), show.timeline, trace=trace, prompt="hello")
    slider, picture = parts(box)
    field, button, status = box.children[0].children
    slider.value = 5
    button.click()
    assert asked == ["hello"]
    assert slider.value == 0
    assert slider.options == tuple(record.step for record in sharing())
    assert picture.value == show.timeline(sharing(), 0).html
    field.value = ""
    button.click()
    assert "empty prompt" in status.value
    assert picture.value == show.timeline(sharing(), 0).html


def test_empty_trace_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one StepRecord"):
        show.step_slider([], show.timeline)


def test_importing_the_figures_loads_no_torch_and_no_widgets() -> None:
    code = (
        "import sys, mini_engine.show;"
        "print([m for m in ('torch', 'ipywidgets', 'matplotlib', 'IPython') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_missing_ipywidgets_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(ImportError, match="extra: pip install"):
        show.step_slider(chunked(), show.timeline)


def test_a_slider_can_walk_through_the_rows_of_a_batch() -> None:
    rows = show.flat_rows(chunked(), 1, block_size=4)
    box = show.step_slider(rows, show.flat_batch, name="row", block_size=4)
    slider, picture = parts(box)
    assert slider.description == "row"
    slider.value = 4
    assert picture.value == show.flat_batch(rows, 4, block_size=4).html
    assert repr(box) == "<a slider over rows 0 to 5; run this cell to move it>"


def test_a_choice_slider_draws_anew_for_each_value_and_word() -> None:
    asked: list[tuple[int, str]] = []

    def draw(value: int, word: str) -> show.Figure:
        asked.append((value, word))
        if word == "mine":
            raise NotImplementedError("Scheduler.__init__ <not started>")
        return show.timeline(chunked(), value)

    box = show.choice_slider(
        [2, 4, 6], draw, name="budget", start=4, among=["reference", "mine"], among_name="whose"
    )
    slider, choice, picture = box.children
    assert (slider.description, choice.description) == ("budget", "whose")
    assert picture.value == show.timeline(chunked(), 4).html
    slider.value = 6
    assert picture.value == show.timeline(chunked(), 6).html
    choice.value = "mine"
    assert "NotImplementedError: Scheduler.__init__ &lt;not started&gt;" in picture.value
    assert asked == [(4, "reference"), (6, "reference"), (6, "mine")]
    plain = box._repr_mimebundle_()["text/plain"]
    assert plain == "<a slider over budget 2 to 6; run this cell to move it>"


def test_a_choice_slider_starts_at_one_of_its_values() -> None:
    with pytest.raises(ValueError, match=r"start must be one of \[2, 4\], got 3"):
        show.choice_slider([2, 4], lambda value: show.timeline(chunked(), value), name="n", start=3)
