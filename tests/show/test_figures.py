"""Owns the proof that figures show what the trace holds, are well formed and say it in words."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mini_engine import show
from mini_engine.show.journey import STOPS
from mini_engine.show.markup import Figure, letters
from mini_engine.trace import StepRecord
from tests.control.workloads import add, control_engine, run_to_end
from tests.show.traces import chunked, preempting, sharing, starving

TRACES = (chunked, preempting, sharing, starving)
WILD = "<script>\"x\" & 'y'</script>"


def parse(figure: Figure) -> ElementTree.Element:
    return ElementTree.fromstring(figure.html)


def grid(figure: Figure, number: int = 0) -> list[list[str]]:
    """The text of a figure's table, cell by cell; a line break is a space."""
    table = list(parse(figure).iter("table"))[number]
    return [
        [" ".join(" ".join(cell.itertext()).split()) for cell in row] for row in table.iter("tr")
    ]


def svg(figure: Figure) -> ElementTree.Element:
    image = next(parse(figure).iter("img"))
    return ElementTree.fromstring(base64.b64decode(image.attrib["src"].partition(",")[2]))


def wild_trace() -> list[StepRecord]:
    engine = control_engine(8, 4)
    add(engine, WILD, range(5), 2)
    run_to_end(engine)
    return engine.trace


@pytest.mark.parametrize("make", TRACES)
def test_timeline_counts_equal_the_records(make: Callable[[], list[StepRecord]]) -> None:
    records = make()
    rows = grid(show.timeline(records, collapse=False))
    assert rows[0][1:] == [str(record.step) for record in records]
    assert [int(total) for total in rows[-1][1:]] == [record.total for record in records]
    for row in rows[1:-1]:
        for text, record in zip(row[1:], records, strict=True):
            count = re.match(r"[PDR] (\d+)", text)
            assert (int(count.group(1)) if count else 0) == record.scheduled.get(row[0], 0)
            assert ("ends" in text) == (row[0] in record.finished)
            assert text.startswith("X") == (row[0] in record.preempted)
            assert (text == "w") == (row[0] in record.waiting and row[0] not in record.preempted)
            assert (text == "-") == (row[0] in record.running and row[0] not in record.scheduled)


def test_timeline_letters_of_chunks() -> None:
    rows = grid(show.timeline(chunked(), collapse=False, budget=6))
    assert rows[0][0] == "step"
    assert rows[3][:6] == ["c", "", "P 4", "P 4", "P 2", "D 1 ends: length"]
    assert rows[1][1:4] == ["P 2", "D 1", "D 1"]
    assert rows[-1][0] == "tokens of budget 6"


def test_timeline_letters_of_a_preemption() -> None:
    rows = grid(show.timeline(preempting(), collapse=False))
    assert rows[2] == ["B", "P 6", "D 1", "D 1", "X", "w", "w", "R 9", "D 1", "D 1 ends: length"]


def test_timeline_shows_hits_aborts_and_requests_without_budget() -> None:
    rows = grid(show.timeline(sharing(), collapse=False))
    assert rows[2][2] == "P 5 hit 48"
    assert rows[1][3] == rows[2][3] == "A"
    assert grid(show.timeline(starving()))[2] == ["b", "P 1", "-"]


@pytest.mark.parametrize("make", TRACES)
def test_collapsed_timeline_loses_no_step(make: Callable[[], list[StepRecord]]) -> None:
    records = make()
    rows = grid(show.timeline(records))
    steps: list[int] = []
    for head in rows[0][1:]:
        first, _, last = head.partition(" to ")
        steps += range(int(first), int(last or first) + 1)
    assert steps == [record.step for record in records]
    wide = grid(show.timeline(records, collapse=False))
    column = 0
    for place, head in enumerate(rows[0][1:], start=1):
        first, _, last = head.partition(" to ")
        for _ in range(int(first), int(last or first) + 1):
            column += 1
            for row, full in zip(rows[1:], wide[1:], strict=True):
                assert row[place].removesuffix(" each") == full[column]


def test_timeline_until_a_step() -> None:
    assert grid(show.timeline(chunked(), 1))[0] == ["step", "0", "1"]


@pytest.mark.parametrize("make", TRACES)
def test_block_map_counts_equal_the_records(make: Callable[[], list[StepRecord]]) -> None:
    records = make()
    size = 16 if make is sharing else 4
    for record in records:
        figure = show.block_map(records, record.step, block_size=size, per_row=5)
        cells = [text for row in grid(figure) for text in row]
        assert sum("free" in text for text in cells) == record.free_blocks
        assert [int(text.split()[0]) for text in cells] == list(range(len(cells)))
        tables = {row[0]: row for row in grid(figure, 1)[1:]}
        assert set(tables) == set(record.running)
        for request_id, table in record.block_tables.items():
            assert tables[request_id][2] == " ".join(map(str, table))
            computed = record.computed[request_id] + record.scheduled[request_id]
            assert tables[request_id][1] == str(computed)
            written = [int(cells[block].rpartition(" ")[2].split("/")[0]) for block in table]
            assert sum(written) == computed


def test_block_map_marks_shared_blocks_by_letters_and_hatching() -> None:
    figure = show.block_map(sharing(), 1, block_size=16)
    cells = [text for row in grid(figure) for text in row]
    assert cells[:3] == [f"{block} AB 16/16" for block in range(3)]
    assert figure.html.count("repeating-linear-gradient") == 3
    assert "3 held blocks are shared" in figure.sentence


@pytest.mark.parametrize("seed", range(4))
def test_block_map_knows_which_free_blocks_are_named(seed: int) -> None:
    engine = control_engine(12, 4, max_num_batched_tokens=7)
    expected = []
    for number in range(8):
        start = (number * (seed + 3)) % 5
        add(engine, f"{number}", range(start, start + 5 + (number * seed) % 9), 1 + number % 3)
        for _ in range(2):
            engine.step()
            expected.append(engine.trace[-1].step)
    run_to_end(engine)
    add(engine, "z", range(900, 903), 1)
    engine.step()
    record = engine.trace[-1]
    figure = show.block_map(engine.trace, record.step, block_size=4)
    cells = [text for row in grid(figure) for text in row]
    named = [block for block in range(12) if engine.cache.is_named(block)]
    assert [block for block, text in enumerate(cells) if "named" in text] == named


def test_block_map_refuses_an_unknown_step() -> None:
    with pytest.raises(ValueError, match="no step 99; its steps: 0 to"):
        show.block_map(chunked(), 99, block_size=4)


def test_clock_has_a_stroke_for_each_token() -> None:
    records = chunked()
    drawing = svg(show.timeline_by_time(records))
    strokes = [e for e in drawing.iter() if e.tag.endswith("line") and e.get("stroke-width")]
    assert len(strokes) == sum(len(record.sampled) for record in records)
    waits = show.timeline_by_time(records, arrivals={"a": records[0].times.start - 1.0})
    assert "W" in {e.text for e in svg(waits).iter() if e.tag.endswith("text")}


def test_clock_explains_its_letters_and_no_others() -> None:
    records = chunked()
    assert "W waits" not in show.timeline_by_time(records).sentence
    waits = show.timeline_by_time(records, arrivals={"a": records[0].times.start - 1.0})
    for meaning in ("W waits", "P prefill", "D decode"):
        assert meaning in waits.sentence
    assert "R recompute" not in waits.sentence


def test_clock_puts_letters_between_strokes() -> None:
    records = [
        replace(record, times=replace(record.times, start=float(n), end=n + 1.0))
        for n, record in enumerate(chunked())
    ]
    elements = list(svg(show.timeline_by_time(records)).iter())
    lines = [e for e in elements if e.tag.endswith("line") and e.get("stroke-width")]
    decodes = [e for e in elements if e.tag.endswith("text") and e.text == "D"]
    assert decodes
    for letter in decodes:
        top = int(letter.get("y", "0")) - 14
        strokes = [float(e.get("x1", "0")) for e in lines if int(e.get("y1", "0")) == top]
        middle = float(letter.get("x", "0")) + 5
        before, after = (
            max((x for x in strokes if x < middle), default=0.0),
            min((x for x in strokes if x > middle), default=1e9),
        )
        assert middle - before > 3
        assert after - middle > 3


def test_clock_names_one_unit_on_its_axis() -> None:
    for length, unit in ((0.5, " ms"), (2.0, " s")):
        records = chunked()
        start = records[-1].times.end - length
        texts = [
            e.text or ""
            for e in svg(show.timeline_by_time(records, arrivals={"a": start})).iter()
            if e.tag.endswith("text")
        ]
        axis = [text for text in texts if text[0].isdigit()]
        assert len(axis) > 2
        assert all(text.endswith(unit) for text in axis)


def test_clock_needs_times() -> None:
    with pytest.raises(ValueError, match="needs records with times"):
        show.timeline_by_time([record.without_times() for record in chunked()])


def test_an_empty_trace_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one StepRecord"):
        show.timeline([])


def all_figures() -> dict[str, Figure]:
    records = wild_trace()
    return {
        "timeline": show.timeline(records, labels={WILD: WILD}),
        "clock": show.timeline_by_time(records, labels={WILD: WILD}),
        "blocks": show.block_map(records, 0, block_size=4, labels={WILD: WILD}),
        "table": show.table([{WILD: WILD, "number": 1.5}], WILD),
        "map": show.request_map(),
    }


@pytest.mark.parametrize("name", ["timeline", "clock", "blocks", "table", "map"])
def test_figures_are_well_formed_escaped_and_described(name: str) -> None:
    figure = all_figures()[name]
    root = parse(figure)
    assert root.attrib["aria-label"] == figure.sentence
    assert next(root.iter("figcaption")).text == figure.sentence
    assert "<script" not in figure.html
    for image in root.iter("img"):
        assert image.attrib["alt"]
    if name in ("clock", "map"):
        assert "<script" not in ElementTree.tostring(svg(figure), "unicode")
    for element in root.iter():
        if element.tag in ("td", "th", "figure", "table"):
            assert "background:" in element.attrib["style"]
            assert "color:" in element.attrib["style"]
    assert figure._repr_mimebundle_() == {"text/html": figure.html, "text/plain": figure.sentence}


def test_figures_repeat_exactly() -> None:
    for first, second in zip(all_figures().items(), all_figures().items(), strict=True):
        assert first[0] == "clock" or first == second


def test_table_shows_every_value() -> None:
    rows = [
        {"request": "A", "ms": 1234.567, "tokens": 12},
        {"request": "B", "ms": 0.5, "tokens": 3},
    ]
    shown = grid(show.table(rows, "times"))
    assert shown == [["request", "ms", "tokens"], ["A", "1,235", "12"], ["B", "0.5", "3"]]
    with pytest.raises(ValueError, match="row 1 has columns"):
        show.table([{"a": 1}, {"b": 2}], "x")
    with pytest.raises(ValueError, match="at least one row"):
        show.table([], "x")


def test_letters_are_unique() -> None:
    names = letters(f"request-{number}" for number in range(80))
    assert len(set(names.values())) == 80
    assert list(names.values())[:2] == ["A", "B"]
    assert list(names.values())[25:28] == ["Z", "AA", "AB"]


@pytest.mark.parametrize("stop", [s for s in STOPS if ":" in s.ours], ids=lambda s: s.title)
def test_the_map_names_code_that_exists(stop: object) -> None:
    file, symbol = stop.ours.split(":")  # type: ignore[attr-defined]
    path = Path(show.__file__).parents[1] / file
    if not path.exists() and path.parent.name in ("compute", "text"):
        pytest.skip(f"{file} is not here yet")
    owner, _, method = symbol.partition(".")
    source = path.read_text(encoding="utf-8")
    assert re.search(rf"^(class|def) {owner}\b", source, re.MULTILINE)
    assert not method or re.search(rf"^    def {method}\b", source, re.MULTILINE)


def test_the_map_draws_every_stop() -> None:
    texts = [e.text for e in svg(show.request_map()).iter() if e.tag.endswith("text")]
    for number, stop in enumerate(STOPS, start=1):
        assert f"{number} {stop.title}" in texts
        assert all(word in " ".join(texts) for word in stop.what.split())
    assert [row[0] for row in grid(show.request_map())[1:]] == [
        f"{number} {stop.title}" for number, stop in enumerate(STOPS, start=1)
    ]
