"""Owns the checks, hints and known mistakes of `text.stop-checker`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from judge import text_compare, text_engine_checks
from judge.api import Case, Check, Details, Mistake

RUN = "judge.text_run:check_stops"
EMOJI = "\N{WAVING HAND SIGN}"


def script(pieces: Sequence[str], stops: Sequence[str], include: bool = False) -> dict[str, Any]:
    return {"pieces": list(pieces), "stops": list(stops), "include": include}


def case(label: str, *scripts: dict[str, Any]) -> Case:
    return Case(label, {"scripts": list(scripts)})


def split(rng: random.Random, text: str, count: int) -> list[str]:
    """The text in about `count` pieces, some of them empty."""
    borders = sorted([0, len(text), *(rng.randint(0, len(text)) for _ in range(count - 1))])
    return [text[a:b] for a, b in pairwise(borders)]


def one_piece(rng: random.Random) -> Sequence[Case]:
    """Stop strings that lie inside a piece, or nowhere."""
    return [
        case("nothing to find", script(["Hello", " there", "!"], ["world"])),
        case("inside one piece", script(["Hello world, ", "again"], ["world"])),
        case("a piece that is the stop string", script(["a", "stop", "b"], ["stop"])),
        case("at the very start", script(["stop it"], ["stop"])),
        case("twice in one piece", script(["one. two. three"], [". "])),
        case("a full stop is no pattern", script(["one two. three"], [". "])),
        case("capital letters differ", script(["Hello World, my world!"], ["world"])),
        case("a line break", script(["first line\n", "second"], ["\n"])),
        case("empty pieces", script(["", "a", "", "b"], ["b"])),
    ]


def across(rng: random.Random) -> Sequence[Case]:
    """Stop strings that lie across pieces."""
    text = "The answer is here. And this is not it. " + rng.choice(["And", "So"]) + " on"
    return [
        case("across two pieces", script(["Hello", " wor", "ld", "!"], ["world"])),
        case("across four pieces", script(["Hello w", "o", "rl", "d!"], ["world"])),
        case("one character at a time", script(text, [". And", ". So"])),
        case("pieces at random", script(split(rng, text, 9), ["this is not"])),
        case("characters that are no ASCII",
             script([f"a{EMOJI}", f"{EMOJI}b"], [f"{EMOJI}{EMOJI}b"])),
    ]  # fmt: skip


def false_starts(rng: random.Random) -> Sequence[Case]:
    """What looks like the beginning of a stop string, and is none."""
    return [
        case("a beginning, and then something else", script(["ab", "x", "y"], ["abc"])),
        case("a beginning twice", script(["ab", "ab", "x"], ["abc"])),
        case("a beginning inside a beginning", script(["aa", "aa", "b"], ["aab"])),
        case("the same, complete in the end", script(list("abababac"), ["ababac"])),
        case("a beginning, and then the whole", script(["wor", "world"], ["world"])),
        case("a beginning before a line break", script(["worl\n", "x"], ["world"])),
        case("the longer one fails, and its end begins another",
             script(["x", "ab", "d", "y"], ["abc", "bd"])),
        case("a piece longer than the stop string ends in its beginning",
             script(["a long piece of text wor", "k"], ["world"])),
    ]  # fmt: skip


def several(rng: random.Random) -> Sequence[Case]:
    """Which of several stop strings counts."""
    cases = []
    for stops in (["a", "is"], ["is", "a"]):
        cases.append(case("'is' is complete before 'a'", script(["The user is a"], stops)))
        cases.append(case("the same, in pieces", script(list("The user is a"), stops)))
    for stops in (["abc", "b"], ["b", "abc"]):
        cases.append(case("a short one inside a long one", script(["abc"], stops)))
    for stops in (["bc", "abc"], ["abc", "bc"]):
        cases.append(case("complete with the same character", script(["xabc"], stops)))
        cases.append(case("the same, in pieces", script(["xa", "b", "cd"], stops)))
    late = ["later on", "l"]
    cases.append(case("the later one in the list comes first", script(["or ", "later on"], late)))
    return cases


def shown_too(rng: random.Random) -> Sequence[Case]:
    """include=True: the stop string is shown, and nothing behind it."""
    return [
        case("inside one piece", script(["Hello world, again"], ["world"], True)),
        case("across pieces", script(["Hello", " wor", "ld!"], ["world"], True)),
        case("a false start", script(["Hello wor", "k"], ["world"], True)),
        case("two of them", script(["The user ", "is a"], ["a", "is"], True)),
    ]


def ends(rng: random.Random) -> Sequence[Case]:
    """The output ends while something is held back."""
    return [
        case("held back at the end", script(["Hello", " worl"], ["world"])),
        case("held back from the start", script(["wor"], ["world"])),
        case("nothing held back", script(["Hello"], ["world"])),
        case("no text at all", script([], ["world"])),
        case("held back, with include", script(["Hello worl"], ["world"], True)),
    ]


def together(rng: random.Random) -> Sequence[Case]:
    scripts = [
        script(["Hello", " wor", "ld"], ["world"]),
        script(["wor", "k", "ing"], ["king"]),
        script(["ld", " is", " a"], ["world", "a"]),
    ]
    return [case("requests side by side", *scripts)]


def random_texts(rng: random.Random) -> Sequence[Case]:
    cases = []
    for letters in ("ab", "ab", "abc"):
        scripts = []
        for _ in range(12):
            text = "".join(rng.choice(letters) for _ in range(rng.randint(4, 24)))
            stops = ["".join(rng.choice(letters) for _ in range(rng.randint(2, 5)))
                     for _ in range(rng.randint(1, 3))]  # fmt: skip
            scripts.append(script(split(rng, text, rng.randint(1, 8)), stops, rng.random() < 0.25))
        cases.append(case("random letters", *scripts))
    return cases


def _check(name: str, title: str, cases: Any) -> Check:
    return Check(name, title, RUN, cases, text_compare.scripts)


EXERCISE = Details(
    checks=(
        _check("one-piece", "a stop string inside one piece", one_piece),
        _check("across", "a stop string across pieces, of which no part is shown", across),
        _check("false-starts", "a beginning of no stop string is shown after all", false_starts),
        _check("several", "of several, the one that is complete first", several),
        _check("include", "include: the stop string is shown, nothing behind it", shown_too),
        _check("end", "what is held back comes out at the end", ends),
        _check("side-by-side", "requests do not disturb each other", together),
        _check("random", "random texts, pieces and stop strings", random_texts),
        Check("at-once", "shows at once what can be no part of a stop string", RUN, false_starts,
              text_compare.at_once, kind="policy"),
        text_engine_checks.scripted_check(),
        text_engine_checks.smollm2_check(),
    ),
    hints=(
        "The client has seen 'Hello wor', and now comes 'ld'. Why is it too late, and what must be "
        "known of 'Hello wor' before any of it is sent?",
        "What is kept is an end of the text that is a beginning of a stop string; what stands "
        "before it was shown. New text is joined to it, and the search goes over both. Of several "
        "stop strings found, compare where they end, not where they start.",
        "text = what is held, and the new piece behind it\n"
        "for each stop string in it: where does it end?\n"
        "one found: the smallest end counts, of equal ones the longest; show up to its start\n"
        "none found: look for the longest end of the text that a stop string starts with;\n"
        "    hold exactly that, show the rest\n"
        "at the end of the output: show what is held",
    ),
    mistakes=tuple(
        Mistake(name, {"StopChecker": f"judge.mistakes.text_stop_checker:{kind}"})
        for name, kind in (
            ("each piece is searched alone", "EachAlone"),
            ("nothing is held back", "HoldsNothing"),
            ("the first stop string of the list wins", "FirstOfList"),
            ("the stop string that starts first wins", "FirstStart"),
            ("of those complete together the shortest wins", "Shortest"),
            ("what follows the stop string is shown", "ShowsRest"),
            ("the stop string is always shown", "AlwaysIncludes"),
            ("include is ignored", "NeverIncludes"),
            ("what is held back is lost at the end", "LosesHeld"),
            ("what is held back is lost when it comes to nothing", "LosesFalseStart"),
            ("everything is held back until the end", "HoldsAll"),
            ("only the shortest beginning is held back", "ShortestStart"),
            ("only a beginning that is a whole piece is held back", "WholePieceOnly"),
            ("the search starts anew behind a false start", "StartsAnew"),
            ("the last occurrence is taken, not the first", "LastOccurrence"),
            ("only the first stop string is held back for", "HoldsForFirst"),
            ("matched is not set", "NeverMatched"),
            ("matched is True, not the stop string", "MatchedTrue"),
            ("all requests share what is held back", "SharedHeld"),
            ("the first stop string of the list wins", "BufferedFirstOfList"),
            ("the stop string that starts first wins", "BufferedFirstStart"),
            ("of those complete together the shortest wins", "BufferedShortest"),
            ("the last occurrence is taken, not the first", "BufferedLastOccurrence"),
            ("what is held back is lost at the end", "BufferedLosesHeld"),
        )
    ),
)  # fmt: skip
