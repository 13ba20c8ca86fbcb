"""Stop strings: SEMANTICS 28 to 31 on text alone, and any text, split, and stops."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_engine.text.stop_checker import StopChecker


def run(pieces: Sequence[str], stops: Sequence[str], include: bool = False) -> list[str]:
    """What is shown after each piece, and at the end if no stop string came."""
    checker = StopChecker(stops, include)
    shown = []
    for piece in pieces:
        shown.append(checker.add(piece))
        if checker.matched is not None:
            return shown
    return [*shown, checker.finish()]


def test_case_28_no_part_of_the_stop_string_is_shown() -> None:
    pieces = ["Hello", " wor", "ld", "!"]
    assert run(pieces, ["world"]) == ["Hello", " ", ""]
    assert run(pieces, ["world"], include=True) == ["Hello", " ", "world"]


@pytest.mark.parametrize("stops", [["a", "is"], ["is", "a"]])
def test_case_29_the_first_to_be_complete_wins_in_either_order(stops: list[str]) -> None:
    assert "".join(run(["The user is a"], stops)) == "The user "
    assert "".join(run(list("The user is a"), stops)) == "The user "


def test_case_29_a_short_one_inside_a_long_one() -> None:
    for pieces in (["abc"], ["a", "b", "c"]):
        assert "".join(run(pieces, ["abc", "b"])) == "a"
    assert "".join(run(["xabc"], ["bc", "abc"])) == "x"  # complete together: the longest


def test_a_false_start_is_shown_as_soon_as_it_is_one() -> None:
    assert run(["ab", "ab", "x"], ["abc"]) == ["", "ab", "abx", ""]
    assert run(["aa", "aa", "b"], ["aab"]) == ["", "aa", ""]


def test_after_a_match_no_text_may_follow() -> None:
    checker = StopChecker(["x"])
    assert checker.add("ax more") == "a"
    assert checker.matched == "x"
    with pytest.raises(RuntimeError, match="ended with 'x'"):
        checker.add("b")


def first_end(text: str, stops: Sequence[str]) -> tuple[int, str] | None:
    """By the definition, character by character: (where it starts, the stop string)."""
    for end in range(1, len(text) + 1):
        done = [stop for stop in stops if text[:end].endswith(stop)]
        if done:
            longest = max(done, key=len)
            return end - len(longest), longest
    return None


letters = st.text("ab\u00e9\U0001f600", max_size=30)


@settings(deadline=None, max_examples=500)
@given(
    text=letters,
    cuts=st.lists(st.integers(0, 30), max_size=8),
    stops=st.lists(st.text("ab\u00e9\U0001f600", min_size=1, max_size=4), min_size=1, max_size=3),
    include=st.booleans(),
)
def test_any_text_in_any_pieces(
    text: str, cuts: list[int], stops: list[str], include: bool
) -> None:
    borders = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[a:b] for a, b in pairwise(borders)]
    shown = run(pieces, stops, include)
    found = first_end(text, stops)
    whole = text if found is None else text[: found[0]] + (found[1] if include else "")
    assert "".join(shown) == whole
    so_far = ""
    for sent in shown:
        so_far += sent
        assert whole.startswith(so_far)
