"""Owns the proof that a chart shows its numbers, and can be read without colours."""

from __future__ import annotations

import base64
import re

import pytest

from mini_engine import show


def drawing(figure: show.Figure) -> str:
    found = re.search(r"base64,([\w+/=]+)", figure.html)
    assert found
    return base64.b64decode(found.group(1)).decode()


def test_every_series_has_its_points_its_dashes_and_its_name() -> None:
    figure = show.line_chart(
        [8, 16, 32], {"up": [0, 5, 10], "down": [10, 5, 0]}, x="budget", y="ms", sentence="They x."
    )
    svg = drawing(figure)
    assert svg.count("<circle") == 6
    heights = [float(y) for y in re.findall(r'<circle cx="[\d.]+" cy="([\d.]+)"', svg)]
    assert heights[:3] == heights[:2:-1]
    assert heights[0] > heights[1] > heights[2], "a larger number stands higher"
    assert {'stroke-dasharray="none"', 'stroke-dasharray="7 4"'} <= set(
        re.findall(r'stroke-dasharray="[^"]+"', svg)
    )
    for word in (">up<", ">down<", ">budget<", ">ms<", ">16<", ">10<"):
        assert word in svg
    assert figure.sentence == "They x."
    assert 'alt="They x."' in figure.html


def test_names_that_end_at_one_height_do_not_lie_over_each_other() -> None:
    figure = show.line_chart(
        [1, 2], {"a": [1, 2], "b": [0, 2]}, x="x", y="y", sentence="Both end at 2."
    )
    ends = re.findall(r'y="([\d.]+)" fill="#\w+" font-weight', drawing(figure))
    assert abs(float(ends[0]) - float(ends[1])) >= 15


@pytest.mark.parametrize("numbers", [[1.0], [1.0, 2.0, 3.0]])
def test_series_must_be_as_long_as_the_values(numbers: list[float]) -> None:
    with pytest.raises(ValueError, match="series as long"):
        show.line_chart([1, 2], {"a": numbers}, x="x", y="y", sentence="No.")
