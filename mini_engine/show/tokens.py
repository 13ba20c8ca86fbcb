"""Owns the picture of a next-token distribution on its way through the filters, and its dials."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mini_engine.show.markup import PAPER, TINTS, Figure, cell, escape, figure, grid, tag
from mini_engine.show.widgets import _box, _ipywidgets

HEAD, GONE = "#eeeeee", "#ececec"
NUMBER = "text-align:right;min-width:74px;"
Dials = Mapping[str, tuple[Sequence[Any], Any]]  # name -> (values, the one to start with)


def token_stages(
    texts: Sequence[str], stages: Mapping[str, Sequence[float]], *, prompt: str = ""
) -> Figure:
    """How likely each token is after each stage, the most likely ones in rows of their own.

    `stages` maps a stage's name to the probabilities of *all* tokens, in one order for all stages;
    the first ones are those of `texts`, and get a row. Of the others one row tells the sum, and
    how many are left. 0 means dropped. Raises ValueError unless all stages are equally long, and
    not shorter than `texts`.
    """
    lengths = {name: len(numbers) for name, numbers in stages.items()}
    if len(set(lengths.values())) != 1 or min(lengths.values()) < max(len(texts), 1):
        raise ValueError(
            f"every stage needs the probabilities of all tokens, at least {len(texts)}; got "
            f"{lengths}"
        )
    lines = [[cell(escape(name), head="col", fill=HEAD) for name in ("token", *stages)]]
    for place, text in enumerate(texts):
        line = [cell(tag("b", _visible(text)), head="row")]
        lines.append(line + _row([numbers[place] for numbers in stages.values()]))
    rest = next(iter(lengths.values())) - len(texts)
    if rest:
        sums = [sum(numbers[len(texts) :]) for numbers in stages.values()]
        lines.append([cell(f"{rest:,} other{'s' * (rest > 1)}", head="row"), *_row(sums)])
    left = [sum(number > 0 for number in numbers) for numbers in stages.values()]
    lines.append([cell("tokens left", head="row", fill=HEAD),
                  *(cell(f"{count:,}", fill=HEAD, extra=NUMBER) for count in left)])  # fmt: skip
    sentence = _sentence(texts, stages, left, prompt)
    return figure(grid(lines, "probabilities after each stage"), sentence)


def _row(numbers: Sequence[float]) -> list[str]:
    """Percentages with a bar behind them; "dropped" where a token goes, nothing after it."""
    cells = []
    for place, number in enumerate(numbers):
        if number > 0:
            bar = f"linear-gradient(90deg,{TINTS[0]} {100 * number:.1f}%,{PAPER} 0)"
            cells.append(cell(escape(_percent(number)), extra=f"{NUMBER}background:{bar};"))
        else:
            before = place == 0 or numbers[place - 1] > 0
            cells.append(cell("dropped" if before else "", fill=GONE, extra=NUMBER))
    return cells


def _percent(number: float) -> str:
    return f"{number:.1%}" if number >= 0.0005 else "< 0.1%"


def _visible(text: str) -> str:
    """A token's text in which spaces and line breaks can be seen."""
    return escape(text.replace(" ", "\u00b7").replace("\n", "\u21b5"))


def _sentence(
    texts: Sequence[str], stages: Mapping[str, Sequence[float]], left: Sequence[int], prompt: str
) -> str:
    first, last = (list(stages.values())[place] for place in (0, -1))
    after = f"After {prompt!r}: of" if prompt else "Of"
    best = repr(texts[0]) if texts else "the best token"
    noun = "token is" if left[-1] == 1 else "tokens are"
    return (
        f"{after} {len(last):,} tokens {left[-1]:,} {noun} left; {best} has "
        f"{_percent(last[0])} of the draws, and had {_percent(first[0])}."
    )


def dial_board(
    dials: Dials,
    draw: Callable[..., Figure],
    *,
    read: Callable[[str], Any] | None = None,
    prompt: str = "",
    height: int = 420,
) -> Any:
    """A slider per dial, above the figure `draw(**values)`, made anew each time one moves.

    With `read` there is also a field for a prompt of one's own and a button: `read(prompt)` is
    called first, and its answer is given to `draw` before the values. What either raises as
    ValueError is shown in words. The picture keeps `height` pixels. Raises ValueError unless each
    dial starts with one of its values, ImportError without ipywidgets.
    """
    for name, (values, start) in dials.items():
        if start not in values:
            raise ValueError(f"{name} must start with one of {list(values)}, got {start!r}")
    widgets = _ipywidgets()
    wide = widgets.Layout(width="60%")
    sliders = {
        name: widgets.SelectionSlider(
            options=list(values), value=start, description=name, layout=wide
        )
        for name, (values, start) in dials.items()
    }
    picture = widgets.HTML(layout=widgets.Layout(height=f"{height}px", overflow="auto"))
    given: list[Any] = [] if read is None else [read(prompt)]

    def redraw(change: Any = None) -> None:
        values = {name: slider.value for name, slider in sliders.items()}
        try:
            picture.value = draw(*given, **values).html
        except ValueError as error:
            picture.value = tag("p", escape(error))

    for slider in sliders.values():
        slider.observe(redraw, names="value")
    redraw()
    rows = [*sliders.values(), picture]
    if read is not None:
        rows.insert(0, _prompt_field(widgets, read, prompt, given, redraw))
    return _box(widgets, rows, f"sliders for {', '.join(dials)}")


def _prompt_field(
    widgets: Any,
    read: Callable[[str], Any],
    prompt: str,
    given: list[Any],
    redraw: Callable[[], None],
) -> Any:
    field = widgets.Text(value=prompt, description="prompt", layout=widgets.Layout(width="60%"))
    button = widgets.Button(description="run it", tooltip="run the model on this prompt")
    status = widgets.Label("")

    def rerun(_: Any) -> None:
        try:
            given[0] = read(field.value)
        except ValueError as error:  # the engine refuses a prompt: say why, beside the button
            status.value = str(error)
            return
        status.value = "done"
        redraw()

    button.on_click(rerun)
    return widgets.HBox([field, button, status])
