"""Owns the picture of a served request on a clock: client, front end and engine core, side by side.

Drawn from an observation of a real request (`mini_engine.serve.observe`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mini_engine.show.markup import INK, LINE, PAPER, Figure, escape, figure, picture

if TYPE_CHECKING:
    from mini_engine.serve.observe import Observation

WIDTH, LEFT, RIGHT, LANE = 900, 150, 40, 62
LANES = ("client", "front end", "engine core")
FILL = {"P": "#cfe3f7", "D": "#fde3b3", "F": "#cdebdf"}


def served_request(seen: Observation) -> Figure:
    """Three lanes on one clock: steps of the core, the front end between, chunks at the client.

    The front end's bars are what lies between the other two: from sending to the first step (P and
    D are prefill and decode), and from the end of a step to the chunk that it gave (F).
    Raises ValueError if nothing was computed.
    """
    steps = [record for record in seen.steps if record.times and record.scheduled]
    if not steps:
        raise ValueError("the observation has no step that computed anything")
    length = max(seen.ended, steps[-1].times.end)  # type: ignore[union-attr]
    scale = (WIDTH - LEFT - RIGHT) / length
    parts = [_text(8, 14 + LANE * lane + 22, name, bold=True) for lane, name in enumerate(LANES)]
    parts += [_lane(lane) for lane in range(3)]
    first = steps[0].times
    assert first is not None
    parts.append(_bar(LEFT, first.start * scale, 1, "F"))
    for record in steps:
        assert record.times is not None
        start, end = record.times.start, record.times.end
        letter = "P" if record.new else "D"
        parts.append(_bar(LEFT + start * scale, (end - start) * scale, 2, letter))
    ends = [record.times.end for record in steps if record.times]
    for when, text in seen.chunks:
        step_end = max([end for end in ends if end <= when], default=ends[0])
        parts.append(_bar(LEFT + step_end * scale, max((when - step_end) * scale, 2.0), 1, "F"))
        parts.append(_chunk(LEFT + when * scale, text))
    parts += _axis(length, scale)
    height = 3 * LANE + 50
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="sans-serif" font-size="12"><rect width="{WIDTH}" height="{height}" '
        f'fill="{PAPER}"/>{"".join(parts)}</svg>'
    )
    sentence = (
        f"One request on a clock of {length:.2g} s: {len(steps)} steps of the engine core "
        "(P prefill, D decode), short bars of the front end before and after them, and "
        f"{len(seen.chunks)} chunks of text at the client while the core goes on."
    )
    return figure(picture(svg, sentence, WIDTH), sentence)


def _text(x: float, y: float, text: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{INK}"{weight}>{escape(text)}</text>'


def _lane(lane: int) -> str:
    y = 14 + LANE * lane + LANE - 10
    return f'<path d="M{LEFT} {y}H{WIDTH - RIGHT}" stroke="{LINE}" stroke-width="0.5"/>'


def _bar(x: float, width: float, lane: int, letter: str) -> str:
    y = 14 + LANE * lane + 6
    bar = (
        f'<rect x="{x:.1f}" y="{y}" width="{max(width, 1.0):.1f}" height="36" '
        f'fill="{FILL[letter]}" stroke="{INK}" stroke-width="0.7"/>'
    )
    return bar + (_text(x + width / 2 - 4, y + 23, letter) if width > 12 else "")


def _chunk(x: float, text: str) -> str:
    shown = text.replace(" ", "\u00b7").replace("\n", "\u21b5")
    return (
        f'<path d="M{x:.1f} 20V56" stroke="{INK}" stroke-width="2"/>'
        f'<text x="{x + 3:.1f}" y="30" fill="{INK}" transform="rotate(40 {x + 3:.1f} 30)">'
        f"{escape(shown)}</text>"
    )


def _axis(length: float, scale: float) -> list[str]:
    y = 3 * LANE + 18
    parts = []
    for part in range(5):
        x = LEFT + part * length / 4 * scale
        parts.append(f'<path d="M{x:.1f} {y - 6}v5" stroke="{INK}"/>')
        parts.append(_text(x - 12, y + 12, f"{part * length / 4:.2f} s"))
    return parts
