"""Owns how figures are written: HTML that needs no stylesheet and stays readable without colour.

Figures are tables where a table will do: screen readers walk through them, text can be selected,
and a viewer that drops the colours still shows every letter and number. Every element carries its
own colours, so a dark theme changes nothing. Drawings are SVG inside an <img>, which shows in
notebooks that are not trusted yet.
"""

from __future__ import annotations

import base64
import html
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

INK = "#1b1b1b"
PAPER = "#ffffff"
LINE = "#8a8a8a"
# Tints of the Okabe-Ito palette, told apart under every common colour blindness; the letters in the
# cells carry the meaning alone.
TINTS = ("#cfe3f7", "#fde3b3", "#cdebdf", "#f7d3e5", "#f6f0b5", "#d9d3ef", "#f9d2c0", "#d8e8f0")


@dataclass(frozen=True)
class Figure:
    """A picture in a notebook: its HTML, and the sentence that says what it shows."""

    html: str
    sentence: str

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What Jupyter displays: the picture where HTML can be shown, else the sentence."""
        return {"text/html": self.html, "text/plain": self.sentence}


def escape(text: object) -> str:
    """Text made safe inside elements and attributes."""
    return html.escape(str(text), quote=True)


def tag(name: str, content: str = "", /, **attributes: object) -> str:
    """One element. `content` is markup already; attribute values are escaped here.

    Underscores become dashes and a trailing one is dropped, as in `aria_label=` and `class_=`.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{content}</{name}>"


def figure(content: str, sentence: str) -> Figure:
    """A figure on its own background, with its sentence below it as a caption."""
    caption = tag("figcaption", escape(sentence), style=f"color:{INK};margin-top:6px")
    style = (
        f"background:{PAPER};color:{INK};padding:10px;margin:0;overflow-x:auto;"
        "font-family:sans-serif;font-size:13px;line-height:1.35"
    )
    return Figure(tag("figure", content + caption, style=style, aria_label=sentence), sentence)


def picture(svg: str, sentence: str, width: int) -> str:
    """An SVG drawing as an <img> whose alt text is `sentence`."""
    data = base64.b64encode(svg.encode()).decode()
    style = f"width:{width}px;max-width:100%;min-width:760px;background:{PAPER}"
    # An <img> is written without an end tag in HTML, and with a slash it is well-formed XML too.
    source = f"data:image/svg+xml;base64,{data}"
    return f'<img src="{source}" alt="{escape(sentence)}" style="{style}"/>'


def cell(content: str, *, fill: str = PAPER, head: str | None = None, extra: str = "") -> str:
    """A table cell of markup. `head` is "row" or "col" for a header cell; `extra` is more style."""
    align = "" if "text-align" in extra else "text-align:left;"
    style = f"background:{fill};color:{INK};border:1px solid {LINE};padding:2px 5px;{align}{extra}"
    return tag("th", content, scope=head, style=style) if head else tag("td", content, style=style)


def grid(rows: Iterable[Sequence[str]], label: str) -> str:
    """A table of cells that are markup already."""
    body = "".join(tag("tr", "".join(row)) for row in rows)
    style = f"border-collapse:collapse;background:{PAPER};color:{INK};margin:0;font-size:13px"
    return tag("table", tag("tbody", body), style=style, aria_label=label)


def table(rows: Sequence[Mapping[str, object]], caption: str) -> Figure:
    """An accessible table: one mapping per row, all with the same keys, which head the columns.

    The first column heads its row. Numbers stand to the right; of a float, three digits are
    shown, and always all before the point.
    Raises ValueError if there is no row or the keys differ.
    """
    if not rows:
        raise ValueError("a table needs at least one row, got none")
    columns = list(rows[0])
    for number, row in enumerate(rows):
        if list(row) != columns:
            raise ValueError(f"row {number} has columns {list(row)}, the first has {columns}")
    lines = [[cell(escape(name), head="col", fill="#eeeeee") for name in columns]]
    for row in rows:
        first, *others = (row[name] for name in columns)
        line = [cell(_shown(first), head="row")]
        for value in others:
            right = isinstance(value, int | float) and not isinstance(value, bool)
            line.append(cell(_shown(value), extra="text-align:right;" if right else ""))
        lines.append(line)
    return figure(grid(lines, caption), caption)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return escape(value)


def letters(request_ids: Iterable[str]) -> dict[str, str]:
    """A short name for each request: its id if all ids are short, else A, B, ... Z, AA, AB, ..."""
    ids = list(dict.fromkeys(request_ids))
    if all(len(request_id) <= 2 for request_id in ids):
        return {request_id: request_id for request_id in ids}
    names = {}
    for number, request_id in enumerate(ids):
        wrapped, place = divmod(number, 26)
        prefix = string.ascii_uppercase[wrapped - 1] if wrapped else ""
        names[request_id] = prefix + string.ascii_uppercase[place]
    return names
