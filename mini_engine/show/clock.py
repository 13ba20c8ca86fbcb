"""Owns the timeline on a clock: when each request waited, and when its tokens came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from mini_engine.show.marks import Mark, marks, request_ids
from mini_engine.show.markup import INK, LINE, Figure, escape, figure, letters, picture
from mini_engine.trace import StepRecord, StepTimes

LANE, CLOCK_WIDTH, NAME_WIDTH = 30, 760, 150
LETTER = {"prefill": "P", "decode": "D", "recompute": "R"}  # everything else waits: W
MEANING = {"W": "W waits", "P": "P prefill", "D": "D decode", "R": "R recompute"}
FILL = {"W": "#ececec", "P": "#cfe3f7", "D": "#fde3b3", "R": "#f7d3e5"}


def timeline_by_time(
    records: Sequence[StepRecord],
    *,
    arrivals: Mapping[str, float] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Figure:
    """Requests on a clock: waiting, prefill and decode as bars, a stroke at each token.

    `arrivals` are the seconds, on the trace's clock, at which requests came in; without it they
    come in at the start of the step that first saw them. Raises ValueError if times are missing.
    """
    timed = [(record, record.times) for record in records if record.times]
    if not timed or len(timed) != len(records):
        raise ValueError("timeline_by_time needs records with times; these have none or too few")
    begin = min([timed[0][1].start, *(arrivals or {}).values()])
    length = max(timed[-1][1].end - begin, 1e-9)
    ids, short = request_ids(records), letters(request_ids(records))
    found = marks(records)
    drawing: list[str] = []
    shown: set[str] = set()  # the letters of all bars
    for lane, request_id in enumerate(ids):
        top = lane * LANE + 8
        name = (labels or {}).get(request_id, "")
        drawing.append(_text(0, top + 14, f"{short[request_id]} {name}".strip(), bold=True))
        came = (arrivals or {}).get(request_id)
        bars, strokes = _bars(timed, found[request_id], request_id, came)
        drawing += _lane(bars, strokes, (begin, length, top))
        shown |= {letter for letter, _, _ in bars}
    drawing += _axis(length, len(ids) * LANE + 12)
    height, width = len(ids) * LANE + 44, NAME_WIDTH + CLOCK_WIDTH + 40
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="13">{"".join(drawing)}</svg>'
    )
    meanings = ", ".join(meaning for letter, meaning in MEANING.items() if letter in shown)
    sentence = (
        f"{len(ids)} requests on a clock of {length:.3g} seconds: {meanings}; "
        "each dark stroke is a sampled token, the first one ends the time to first token."
    )
    return figure(picture(svg, sentence, width), sentence)


def _bars(
    timed: Sequence[tuple[StepRecord, StepTimes]],
    line: Sequence[Mark | None],
    request_id: str,
    came: float | None,
) -> tuple[list[tuple[str, float, float]], list[float]]:
    """The (letter, start, end) of one request's bars, and the moments of its tokens."""
    bars: list[tuple[str, float, float]] = []
    strokes = []
    since = came
    for (record, times), mark in zip(timed, line, strict=True):
        if mark is None or mark.kind == "aborted":
            continue
        letter = LETTER.get(mark.kind, "W")
        start = times.start if since is None else since  # between steps a request keeps its state
        if not bars and letter != "W" and start < times.start:
            bars.append(("W", start, times.start))
            start = times.start
        bars.append((letter, start, times.end))
        since = times.end
        if request_id in record.sampled:
            strokes.append(times.end)
    return _joined(bars), strokes


def _lane(
    bars: Sequence[tuple[str, float, float]],
    strokes: Sequence[float],
    place: tuple[float, float, int],
) -> list[str]:
    """One request's row; `place` is (start of the clock, its length, top of the lane)."""
    begin, length, top = place
    parts = []
    for letter, start, end in bars:
        left, right = (_x(moment, begin, length) for moment in (start, end))
        parts.append(
            f'<rect x="{left:.1f}" y="{top}" width="{right - left:.1f}" height="20" '
            f'fill="{FILL[letter]}" stroke="{LINE}"/>'
        )
        if right - left > 14:
            middle = _middle_between([_x(moment, begin, length) for moment in strokes], left, right)
            parts.append(_text(middle - 5, top + 14, letter))
    for moment in strokes:
        x = _x(moment, begin, length)
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{top + 20}" '
            f'stroke="{INK}" stroke-width="1.5"/>'
        )
    return parts


def _middle_between(strokes: Sequence[float], left: float, right: float) -> float:
    """The middle of the widest part of a bar that no stroke crosses: its letter stands there."""
    edges = [left, *(x for x in strokes if left < x < right), right]
    start, end = max(pairwise(edges), key=lambda part: part[1] - part[0])
    return (start + end) / 2


def _joined(bars: Sequence[tuple[str, float, float]]) -> list[tuple[str, float, float]]:
    """Neighbouring bars of one letter as one bar."""
    joined: list[tuple[str, float, float]] = []
    for letter, start, end in bars:
        if joined and joined[-1][0] == letter:
            joined[-1] = (letter, joined[-1][1], end)
        else:
            joined.append((letter, start, end))
    return joined


def _x(moment: float, begin: float, length: float) -> float:
    return NAME_WIDTH + CLOCK_WIDTH * (moment - begin) / length


def _axis(length: float, top: int) -> list[str]:
    """The time axis: up to 7 marks at round times."""
    right = NAME_WIDTH + CLOCK_WIDTH
    parts = [f'<line x1="{NAME_WIDTH}" x2="{right}" y1="{top}" y2="{top}" stroke="{INK}"/>']
    steps = (digit * 10.0**power for power in range(-6, 6) for digit in (1, 2, 5))
    gap = next(step for step in steps if length / step <= 6)
    for number in range(int(length / gap) + 1):
        x = _x(number * gap, 0.0, length)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{top + 5}" stroke="{INK}"/>')
        words = f"{number * gap:g} s" if length >= 1 else f"{number * gap * 1000:g} ms"
        parts.append(_text(x - 10, top + 20, words))
    return parts


def _text(x: float, y: float, content: str, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y}" fill="{INK}"{weight}>{escape(content)}</text>'
