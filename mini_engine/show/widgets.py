"""Owns the widgets: sliders over the static figures. Needs ipywidgets, loaded when one is made."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from mini_engine.show.markup import Figure, escape, tag
from mini_engine.trace import StepRecord

Draw = Callable[..., Figure]


def _ipywidgets() -> Any:
    try:
        return importlib.import_module("ipywidgets")
    except ImportError as error:
        raise ImportError(
            "widgets need the package ipywidgets; install the extra: pip install -e '.[lab]'"
        ) from error


def step_slider(
    records: Sequence[StepRecord],
    draw: Draw,
    *,
    trace: Callable[[str], Sequence[StepRecord]] | None = None,
    prompt: str = "Once upon a time",
    height: int = 380,
    name: str = "step",
    **options: Any,
) -> Any:
    """A slider over the steps of a trace, above the figure `draw(records, step, **options)`.

    `records` may be anything that is numbered by an attribute `step`; `name` is what one is called.

    With `trace` there is also a field for a prompt of one's own and a button: `trace(prompt)` runs
    it and gives the new records. The box keeps `height` pixels, so that nothing on the page jumps.
    Raises ValueError for an empty trace, ImportError without ipywidgets.
    """
    if not records:
        raise ValueError("a slider needs at least one StepRecord, got none; run the engine first")
    widgets = _ipywidgets()
    shown = list(records)
    slider = widgets.SelectionSlider(
        options=[record.step for record in shown],
        description=name,
        layout=widgets.Layout(width="60%"),
    )
    picture = widgets.HTML(layout=widgets.Layout(height=f"{height}px", overflow="auto"))

    def redraw(change: Any = None) -> None:
        picture.value = draw(shown, slider.value, **options).html

    slider.observe(redraw, names="value")
    redraw()
    rows = [slider, picture]
    if trace is not None:
        rows.insert(0, _prompt_row(widgets, trace, prompt, shown, slider, redraw, name))
    return _box(widgets, rows, f"a slider over {name}s {shown[0].step} to {shown[-1].step}")


def choice_slider(
    values: Sequence[Any],
    draw: Draw,
    *,
    name: str,
    start: Any,
    among: Sequence[str] = (),
    among_name: str = "",
    height: int = 380,
) -> Any:
    """A slider over `values`, called `name`, above the figure `draw(value)`, made anew each time.

    With `among` there is also a choice between these words, and the figure is `draw(value, word)`.
    What `draw` raises as ValueError or NotImplementedError is shown in words in the figure's place.
    Raises ValueError unless `start` is one of the values, ImportError without ipywidgets.
    """
    if start not in values:
        raise ValueError(f"start must be one of {list(values)}, got {start!r}")
    widgets = _ipywidgets()
    slider = widgets.SelectionSlider(
        options=list(values), value=start, description=name, layout=widgets.Layout(width="60%")
    )
    picture = widgets.HTML(layout=widgets.Layout(height=f"{height}px", overflow="auto"))
    rows = [slider, picture]
    choice = None
    if among:
        choice = widgets.Dropdown(options=list(among), description=among_name)
        rows.insert(1, choice)

    def redraw(change: Any = None) -> None:
        given = (slider.value,) if choice is None else (slider.value, choice.value)
        try:
            picture.value = draw(*given).html
        except (ValueError, NotImplementedError) as error:
            picture.value = tag("p", escape(f"{type(error).__name__}: {error}"))

    for control in rows[:-1]:
        control.observe(redraw, names="value")
    redraw()
    return _box(widgets, rows, f"a slider over {name} {values[0]} to {values[-1]}")


def _prompt_row(
    widgets: Any,
    trace: Callable[[str], Sequence[StepRecord]],
    prompt: str,
    shown: list[StepRecord],
    slider: Any,
    redraw: Callable[[], None],
    name: str,
) -> Any:
    field = widgets.Text(value=prompt, description="prompt", layout=widgets.Layout(width="60%"))
    button = widgets.Button(description="run it", tooltip="run the engine on this prompt")
    status = widgets.Label("")

    def rerun(_: Any) -> None:
        try:
            records = list(trace(field.value))
        except ValueError as error:  # the engine refuses a prompt: say why, beside the button
            status.value = str(error)
            return
        status.value = f"{len(records)} {name}s"
        shown[:] = records
        slider.options = [record.step for record in shown]  # goes back to the first step
        redraw()

    button.on_click(rerun)
    return widgets.HBox([field, button, status])


def _box(widgets: Any, rows: Sequence[Any], summary: str) -> Any:
    class StepBox(widgets.VBox):  # type: ignore[misc]
        """A VBox whose text form is one stable line, so that saved outputs can be compared."""

        def __repr__(self) -> str:
            return f"<{summary}; run this cell to move it>"

    return StepBox(rows)
