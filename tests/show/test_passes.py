"""Owns the proof that the picture of a generate loop shows the forward passes that were made."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

torch = pytest.importorskip("torch")

from mini_engine.compute.model import Model  # noqa: E402
from mini_engine.compute.naive import generate_cached, generate_naive  # noqa: E402
from mini_engine.compute.random_model import TINY_LLAMA, random_model  # noqa: E402
from mini_engine.show.passes import (  # noqa: E402
    Pass,
    kv_rows,
    record_passes,
    recorded_positions,
)

LOOPS = {"naive": generate_naive, "cached": generate_cached}
PROMPT = [5, 6, 7, 8]


@pytest.fixture(scope="module")
def model() -> Model:
    return random_model(TINY_LLAMA, seed=0)


@pytest.fixture(scope="module")
def passes(model: Model) -> list[Pass]:
    return record_passes(model, PROMPT, 3, LOOPS, lambda ids: f"<{ids[0]}>")


def table(html: str, number: int) -> list[list[str]]:
    found = list(ElementTree.fromstring(html).iter("table"))[number]
    return [["".join(cell.itertext()) for cell in row] for row in found.iter("tr")]


def test_naive_computes_everything_and_cached_each_token_once(passes: list[Pass]) -> None:
    assert [one.computed["naive"] for one in passes] == [
        (0, 1, 2, 3),
        (0, 1, 2, 3, 4),
        (0, 1, 2, 3, 4, 5),
    ]
    assert [one.computed["cached"] for one in passes] == [(0, 1, 2, 3), (4,), (5,)]


def test_tokens_are_those_known_before_the_pass(passes: list[Pass], model: Model) -> None:
    outputs = generate_cached(model, PROMPT, 3)
    assert passes[2].tokens == tuple(f"<{token}>" for token in [*PROMPT, *outputs[:2]])


def test_the_picture_holds_a_letter_for_every_position(passes: list[Pass]) -> None:
    html = kv_rows(passes, 1).html
    rows = {row[0]: row[1:] for row in table(html, 0)}
    assert rows["position"] == ["0", "1", "2", "3", "4", "5"]
    assert rows["naive"] == ["C", "C", "C", "C", "C", ""]
    assert rows["cached"] == ["k", "k", "k", "k", "C", ""]
    assert rows["token"][:4] == ["<5>", "<6>", "<7>", "<8>"]
    assert rows["token"][5] == ""
    assert table(html, 1)[1:] == [["naive", "5", "9"], ["cached", "1", "5"]]


def test_the_sentence_says_what_the_picture_shows(passes: list[Pass]) -> None:
    assert kv_rows(passes, 2).sentence == (
        "Pass 2, with 6 tokens known: naive computed 6 rows of keys and values and kept 0; "
        "cached computed 1 rows of keys and values and kept 5."
    )


def test_text_of_tokens_is_escaped(model: Model) -> None:
    html = kv_rows(record_passes(model, PROMPT, 2, LOOPS, lambda ids: "<b> \n&"), 0).html
    assert table(html, 0)[0][1] == "<b>\u00b7\u21b5&"


def test_the_recorder_leaves_no_hook_behind(model: Model) -> None:
    with recorded_positions(model) as positions:
        generate_cached(model, PROMPT, 2)
    generate_cached(model, PROMPT, 2)
    assert len(positions) == 2


def test_what_cannot_be_drawn_is_refused(model: Model, passes: list[Pass]) -> None:
    with pytest.raises(ValueError, match="prompt is empty"):
        record_passes(model, [], 2, LOOPS)
    with pytest.raises(ValueError, match="there is no pass 9"):
        kv_rows(passes, 9)
    wrong = {"cached": generate_cached, "wrong": lambda *_: [0, 0]}
    with pytest.raises(ValueError, match="wrong gives the tokens"):
        record_passes(model, PROMPT, 2, wrong)
    outputs = generate_cached(model, PROMPT, 2)
    with pytest.raises(ValueError, match="0 forward passes for 2 tokens"):
        record_passes(model, PROMPT, 2, {"cheats": lambda *_: outputs})
