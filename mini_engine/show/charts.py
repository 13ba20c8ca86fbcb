"""Owns line charts: a few series over the same values, each with its own marks, as a drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from mini_engine.show.markup import INK, LINE, PAPER, Figure, escape, figure, picture

WIDTH, HEIGHT = 760, 300
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 16, 46
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")  # Okabe-Ito
DASHES = ("none", "7 4", "2 4", "9 3 2 3")


def line_chart(
    values: Sequence[float],
    series: Mapping[str, Sequence[float]],
    *,
    x: str,
    y: str,
    sentence: str,
) -> Figure:
    """One line per series over `values`, which stand at equal distances. The y axis begins at 0.

    Each line has its own colour, dashes and a label at its end; `sentence` says what is to be seen.
    Raises ValueError unless there are two values or more and every series is as long.
    """
    if len(values) < 2 or any(len(numbers) != len(values) for numbers in series.values()):
        raise ValueError(
            f"a chart needs 2 values or more and series as long, got {len(values)} values and "
            f"series of {[len(numbers) for numbers in series.values()]}"
        )
    top = _round_up(max(max(numbers) for numbers in series.values()))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12"><rect width="{WIDTH}" height="{HEIGHT}" '
        f'fill="{PAPER}"/>',
        *_axes(values, top, x, y),
    ]
    ends = _spread([_y(numbers[-1], top) for numbers in series.values()])
    for number, (name, numbers) in enumerate(series.items()):
        parts += _line(number, name, numbers, top, ends[number])
    return figure(picture("".join(parts) + "</svg>", sentence, WIDTH), sentence)


def _x(index: int, count: int) -> float:
    return LEFT + index * (WIDTH - LEFT - RIGHT) / (count - 1)


def _y(number: float, top: float) -> float:
    return HEIGHT - BOTTOM - number / top * (HEIGHT - TOP - BOTTOM)


def _round_up(number: float) -> float:
    """The next of 1, 2, 2.5, 5 times a power of ten."""
    scale = 10.0 ** (len(str(int(number))) - 1) if number >= 1 else 0.001
    while True:
        for step in (1, 2, 2.5, 5):
            if number <= step * scale:
                return step * scale
        scale *= 10


def _axes(values: Sequence[float], top: float, x: str, y: str) -> list[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = []
    for part in range(5):
        height = _y(top * part / 4, top)
        parts.append(
            f'<path d="M{LEFT} {height:.1f}H{right}" stroke="{LINE}" stroke-width="0.5"/>'
            f'<text x="{LEFT - 6}" y="{height + 4:.1f}" text-anchor="end" fill="{INK}">'
            f"{top * part / 4:g}</text>"
        )
    for index, value in enumerate(values):
        parts.append(
            f'<text x="{_x(index, len(values)):.1f}" y="{bottom + 16}" text-anchor="middle" '
            f'fill="{INK}">{value:g}</text>'
        )
    middle = (LEFT + right) / 2
    parts.append(
        f'<text x="{middle:.0f}" y="{HEIGHT - 8}" text-anchor="middle" fill="{INK}">'
        f'{escape(x)}</text><text x="14" y="{(TOP + bottom) / 2:.0f}" text-anchor="middle" '
        f'fill="{INK}" transform="rotate(-90 14 {(TOP + bottom) / 2:.0f})">{escape(y)}</text>'
    )
    return parts


def _line(number: int, name: str, numbers: Sequence[float], top: float, end: float) -> list[str]:
    colour, dash = COLOURS[number % 4], DASHES[number % 4]
    points = [(_x(i, len(numbers)), _y(n, top)) for i, n in enumerate(numbers)]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points)
    return [
        f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2" '
        f'stroke-dasharray="{dash}"/>{dots}',
        f'<text x="{points[-1][0] + 8:.1f}" y="{end + 4:.1f}" fill="{colour}" '
        f'font-weight="bold">{escape(name)}</text>',
    ]


def _spread(heights: Sequence[float]) -> list[float]:
    """Moved apart so that labels 15 pixels high do not lie over each other."""
    order = sorted(range(len(heights)), key=lambda i: -heights[i])  # the lowest on the page first
    moved = list(heights)
    for below, above in pairwise(order):
        moved[above] = min(moved[above], moved[below] - 15)
    return moved
