"""The picture of a next-token distribution: numbers, words for dropped tokens, and its dials."""

from __future__ import annotations

import re

import pytest

from mini_engine import show

TEXTS = [" Paris", "\n"]
STAGES = {
    "model": [0.5, 0.3, 0.1999, 0.0001],
    "top-k 2": [0.625, 0.375, 0.0, 0.0],
    "top-p .6": [1.0, 0.0, 0.0, 0.0],
}


def rows(html: str) -> list[list[str]]:
    found = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in html.split("</tr>")]
    return [[re.sub(r"<[^>]+>", "", cell) for cell in row] for row in found if row]


def test_every_stage_has_its_numbers_and_says_what_it_drops() -> None:
    figure = show.token_stages(TEXTS, STAGES, prompt="The capital of France is")
    assert rows(figure.html) == [
        ["token", "model", "top-k 2", "top-p .6"],
        ["\u00b7Paris", "50.0%", "62.5%", "100.0%"],
        ["\u21b5", "30.0%", "37.5%", "dropped"],
        ["2 others", "20.0%", "dropped", ""],
        ["tokens left", "4", "2", "1"],
    ]
    assert figure.sentence == (
        "After 'The capital of France is': of 4 tokens 1 token is left; ' Paris' has 100.0% of the "
        "draws, and had 50.0%."
    )
    assert 'scope="col"' in figure.html
    assert 'scope="row"' in figure.html


def test_small_shares_are_not_called_zero_and_markup_is_escaped() -> None:
    figure = show.token_stages(["<b>"], {"model": [0.9999, 0.0001]})
    assert "&lt;b&gt;" in figure.html
    assert rows(figure.html)[2] == ["1 other", "&lt; 0.1%"]


def test_stages_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="probabilities of all tokens, at least 2"):
        show.token_stages(TEXTS, {"model": [1.0]})
    with pytest.raises(ValueError, match=r"at least 1; got \{'a': 2, 'b': 1\}"):
        show.token_stages(["x"], {"a": [0.5, 0.5], "b": [1.0]})


def test_dials_redraw_and_an_own_prompt_is_read() -> None:
    pytest.importorskip("ipywidgets")
    asked: list[str] = []

    def read(prompt: str) -> list[float]:
        asked.append(prompt)
        if not prompt:
            raise ValueError("the prompt is empty")
        return [1.0, 0.0] if prompt == "sure" else [0.5, 0.5]

    def draw(numbers: list[float], *, top_k: int, top_p: float) -> show.Figure:
        if top_k == 9:
            raise ValueError("no such top_k")
        return show.token_stages(["a"], {f"k {top_k} p {top_p}": numbers})

    dials = {"top_k": ([0, 1, 9], 0), "top_p": ([0.5, 1.0], 1.0)}
    box = show.dial_board(dials, draw, read=read, prompt="maybe", height=200)
    line, k, p, picture = box.children
    field, button, status = line.children
    assert (k.description, p.description, picture.layout.height) == ("top_k", "top_p", "200px")
    assert picture.value == draw([0.5, 0.5], top_k=0, top_p=1.0).html
    k.value, p.value = 1, 0.5
    assert picture.value == draw([0.5, 0.5], top_k=1, top_p=0.5).html
    field.value = "sure"
    button.click()
    assert picture.value == draw([1.0, 0.0], top_k=1, top_p=0.5).html
    field.value = ""
    button.click()
    assert status.value == "the prompt is empty"
    assert asked == ["maybe", "sure", ""]
    k.value = 9
    assert "no such top_k" in picture.value
    text = box._repr_mimebundle_()["text/plain"]
    assert text == "<sliders for top_k, top_p; run this cell to move it>"


def test_a_dial_starts_with_one_of_its_values() -> None:
    with pytest.raises(ValueError, match=r"top_k must start with one of \[0, 1\], got 5"):
        show.dial_board({"top_k": ([0, 1], 5)}, lambda top_k: show.token_stages([], {"m": [1.0]}))
