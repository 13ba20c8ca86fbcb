"""The pictures of a text stream and of a served request show what was recorded."""

from __future__ import annotations

import base64
import re
from xml.etree import ElementTree

import pytest

from judge.text_tokenizers import light_tokenizer
from mini_engine.serve.observe import Observation
from mini_engine.show.served import served_request
from mini_engine.show.streams import text_steps, text_stream
from mini_engine.trace import StepRecord, StepTimes

EMOJI = "\N{WAVING HAND SIGN}"


def rows(html: str, number: int) -> list[list[str]]:
    found = list(ElementTree.fromstring(html).iter("table"))[number]
    return [["".join(cell.itertext()) for cell in row] for row in found.iter("tr")]


def test_every_step_says_what_is_held_and_what_the_client_has() -> None:
    tokenizer = light_tokenizer("byte_level")
    steps = text_steps(tokenizer, tokenizer.encode(f"he{EMOJI} world"), ["world"])
    assert [step.text for step in steps] == ["he", "", EMOJI, " w", "o", "r", "l", "d"]
    assert [step.shown for step in steps] == ["he", "", EMOJI, " ", "", "", "", ""]
    assert [step.held for step in steps] == ["", "", "", "w", "wo", "wor", "worl", ""]
    assert [step.pending for step in steps] == [False, True, *[False] * 6]
    assert steps[-1].matched == "world"
    assert steps[-1].client == f"he{EMOJI} "
    with pytest.raises(ValueError, match="at least one token"):
        text_steps(tokenizer, [])


def test_the_picture_of_a_step() -> None:
    tokenizer = light_tokenizer("byte_level")
    steps = text_steps(tokenizer, tokenizer.encode(f"he{EMOJI}"))
    shown = text_stream(steps, 1)
    tokens, places = rows(shown.html, 0), rows(shown.html, 1)
    assert tokens[1][2:] == ["68 65", "'he'", "'he'"]
    assert tokens[2][2:] == ["f0 9f", "nothing", "nothing"]
    assert [row[1] for row in places] == ["'he'", "nothing", "yes"]
    assert shown.sentence == "After token 1 the client has 'he'; a character is not complete."
    with pytest.raises(ValueError, match="no token 9"):
        text_stream(steps, 9)


def test_a_served_request_has_a_bar_for_every_step_and_a_stroke_for_every_chunk() -> None:
    times = [StepTimes(t, 0.0, 0.0, 0.0, t + 0.2) for t in (0.1, 0.3, 0.5)]
    steps = tuple(
        StepRecord(number, new=["r"] if number == 0 else [], scheduled={"r": 1}, times=when)
        for number, when in enumerate(times)
    )
    seen = Observation(((0.31, "Hi"), (0.52, " you")), steps, 0.75)
    shown = served_request(seen)
    svg = base64.b64decode(re.search(r"base64,([^\"]+)", shown.html)[1]).decode()  # type: ignore[index]
    texts = re.findall(r">([^<>]+)</text>", svg)
    assert [t for t in texts if t in ("P", "D")] == ["P", "D", "D"]
    assert [t for t in texts if t in ("Hi", "\u00b7you")] == ["Hi", "\u00b7you"]
    assert "3 steps" in shown.sentence
    assert "2 chunks" in shown.sentence
    with pytest.raises(ValueError, match="no step"):
        served_request(Observation((), (), 1.0))
