"""Owns the map of a request's life: every stop, who owns it, where it runs, its name elsewhere.

The names in vLLM and SGLang come from the source map; the paths there begin below `vllm/` and
`sglang/srt/`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from mini_engine.show.markup import (
    INK,
    PAPER,
    Figure,
    cell,
    escape,
    figure,
    grid,
    picture,
    tag,
)
from mini_engine.show.source_map import Reference, load_source_map, reference_cell

SERVER, ENGINE, DEVICE = "server process, CPU", "engine process, CPU", "GPU"
LANE_FILL = {SERVER: "#fde3b3", ENGINE: "#cfe3f7", DEVICE: "url(#hatch)"}
LANES = (SERVER, ENGINE, DEVICE)
BOX, PITCH, LANE_HEIGHT, LEFT = (108, 46), 126, 96, 120


@dataclass(frozen=True)
class Stop:
    """One stop of the journey. `ours` is "file:symbol" under mini_engine/, or a chapter to come."""

    title: str
    what: str
    lane: str
    column: int
    ours: str


STOPS = (
    Stop(
        "HTTP in",
        "a JSON body with messages",
        SERVER,
        0,
        "chapter 06b",
    ),
    Stop(
        "text to ids",
        "chat template, then tokenizer",
        SERVER,
        1,
        "engine.py:LLMEngine.chat_prompt",
    ),
    Stop(
        "queue",
        "waits until it is admitted",
        ENGINE,
        1,
        "control/scheduler.py:Scheduler.add",
    ),
    Stop(
        "schedule",
        "chooses this step's tokens",
        ENGINE,
        2,
        "control/scheduler.py:Scheduler.schedule",
    ),
    Stop(
        "blocks",
        "finds room for keys and values",
        ENGINE,
        3,
        "control/prefix_cache.py:PrefixCache.grow",
    ),
    Stop(
        "batch",
        "packs the chunks, no padding",
        ENGINE,
        4,
        "compute/batch.py:build_batch",
    ),
    Stop(
        "forward",
        "the model, all layers",
        DEVICE,
        4,
        "compute/runner.py:ModelRunner.run",
    ),
    Stop(
        "sample",
        "scores to one token",
        DEVICE,
        5,
        "compute/sampler.py:Sampler",
    ),
    Stop(
        "update",
        "appends the token; ended?",
        ENGINE,
        6,
        "control/scheduler.py:Scheduler.update",
    ),
    Stop(
        "ids to text",
        "only whole characters",
        SERVER,
        6,
        "text/detokenizer.py:IncrementalDetokenizer",
    ),
    Stop(
        "HTTP out",
        "one event per piece of text",
        SERVER,
        7,
        "chapter 06b",
    ),
)


def request_map(names: bool = True) -> Figure:
    """The journey as a drawing; with `names`, also a table of the stops' names in three engines."""
    path = ", ".join(f"{number} {stop.title}" for number, stop in enumerate(STOPS, start=1))
    sentence = (
        f"A request's life in {len(STOPS)} stops: {path}. Stops 4 to 9 are one step, repeated "
        "until the request ends; only stops 7 and 8 run on the GPU (in this course, on your CPU)."
    )
    drawing = picture(_drawing(), sentence, LEFT + 8 * PITCH)
    return figure(drawing + (_names() if names else ""), sentence)


def _place(stop: Stop) -> tuple[int, int]:
    """Left and top of a stop's box."""
    return LEFT + stop.column * PITCH, LANES.index(stop.lane) * LANE_HEIGHT + 34


def _drawing() -> str:
    width, height = LEFT + 8 * PITCH, 3 * LANE_HEIGHT + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">'
        '<defs><pattern id="hatch" width="8" height="8" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect width="8" height="8" fill="#e3f2ea"/>'
        '<rect width="3" height="8" fill="#cdebdf"/></pattern>'
        '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{INK}"/></marker></defs>'
        f'<rect width="{width}" height="{height}" fill="{PAPER}"/>'
    ]
    for index, lane in enumerate(LANES):
        top = index * LANE_HEIGHT
        parts.append(f'<rect y="{top + 4}" width="{width}" height="90" fill="#f4f4f4"/>')
        for line, words in enumerate(lane.split(", ")):
            parts.append(_text(8, top + 44 + 16 * line, words, bold=line == 0))
    for number, stop in enumerate(STOPS, start=1):
        parts += _box(number, stop)
    for before, after in pairwise(STOPS):
        parts.append(_arrow(before, after))
    parts += _loop()
    return "".join(parts) + "</svg>"


def _box(number: int, stop: Stop) -> list[str]:
    left, top = _place(stop)
    words = stop.what.split()
    middle = (len(words) + 1) // 2
    lines = (" ".join(words[:middle]), " ".join(words[middle:]))
    parts = [
        f'<rect x="{left}" y="{top}" width="{BOX[0]}" height="{BOX[1] + 8}" rx="5" '
        f'fill="{LANE_FILL[stop.lane]}" stroke="{INK}"/>',
        _text(left + 6, top + 16, f"{number} {stop.title}", bold=True),
    ]
    return parts + [_text(left + 6, top + 31 + 14 * i, line) for i, line in enumerate(lines)]


def _arrow(before: Stop, after: Stop) -> str:
    (x1, y1), (x2, y2) = _place(before), _place(after)
    height = BOX[1] + 8
    if y1 == y2:
        start, end = (x1 + BOX[0], y1 + height // 2), (x2, y2 + height // 2)
    elif x1 == x2:
        down = y2 > y1
        start = (x1 + BOX[0] // 2, y1 + height if down else y1)
        end = (x2 + BOX[0] // 2, y2 if down else y2 + height)
    else:
        start, end = (x1 + BOX[0], y1 + height // 2), (x2 + 20, y2 + height)
    return (
        f'<path d="M{start[0]} {start[1]}L{end[0]} {end[1]}" stroke="{INK}" stroke-width="1.5" '
        'fill="none" marker-end="url(#head)"/>'
    )


def _loop() -> list[str]:
    """The way back from update to schedule: a step that was not a request's last."""
    (left, top), (right, _) = (_place(s) for s in STOPS if s.title in ("schedule", "update"))
    left, right, over = left + BOX[0] // 2, right + 20, top - 16
    path = f"M{right} {top}L{right} {over}L{left} {over}L{left} {top}"
    words = "not ended: once more in the next step"
    return [
        f'<path d="{path}" stroke="{INK}" stroke-width="1.5" fill="none" '
        'stroke-dasharray="5 3" marker-end="url(#head)"/>',
        _text((left + right) // 2 - 100, over - 4, words),
    ]


def _text(x: int, y: int, content: str, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x}" y="{y}" fill="{INK}"{weight}>{escape(content)}</text>'


def _names() -> str:
    found = load_source_map()
    engines = (f"vLLM {found.versions['vllm']}", f"SGLang {found.versions['sglang']}")
    heads = ("stop", "where", "here", *engines)
    rows = [[cell(head, head="col", fill="#eeeeee") for head in heads]]
    for number, stop in enumerate(STOPS, start=1):
        row = [cell(f"{number} {escape(stop.title)}", head="row"), cell(escape(stop.lane))]
        row.append(cell(_ours(stop)))
        place = found.place(stop.title)
        rows.append([*row, *(cell(reference_cell(them[0])) for them in (place.vllm, place.sglang))])
    label = "the stops and their names in three engines"
    return tag("div", grid(rows, label), style="margin-top:8px;font-size:12px")


def _ours(stop: Stop) -> str:
    file, colon, symbol = stop.ours.partition(":")
    return reference_cell(Reference(f"mini_engine/{file}", symbol)) if colon else escape(stop.ours)
