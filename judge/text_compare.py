"""Owns the comparison of streamed text: too early, too late, wrong. Runs in the judge's process.

What a detokenizer holds back is free within bounds: it may hold a whole token whose last character
is not complete, and a stop checker as many characters as could still begin a stop string.
"""

from __future__ import annotations

from typing import Any

from judge import compare
from judge.api import Case, Difference
from judge.wire import Raised

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
SHOWN_TOKENS = 8


def streams(case: Case, expected: Any, got: Any) -> Difference | None:
    """Compare for `judge.text_run:detokenize`."""
    for number, (want, have) in enumerate(zip(expected["streams"], got["streams"], strict=True)):
        several = len(expected["streams"]) > 1
        place = [case.label + (f", request {number} of {len(expected['streams'])} that take turns"
                               if several else "")]  # fmt: skip
        found = _stream(case, place, want, have)
        if found is not None:
            return found
    return None


def _stream(case: Case, place: list[str], want: Any, have: Any) -> Difference | None:
    whole = "".join(text for text, _ in want["steps"]) + want["end"]
    if isinstance(have["end"], Raised) and not have["steps"] and want["steps"]:
        return compare.error_or_wrong(None, have["end"], (*place, "making the detokenizer"))
    released = certain = due = ""  # got; all that is text by now; up to where it must be released
    for number, (text, pending) in enumerate(want["steps"]):
        certain += text
        if not pending and not certain.endswith(REPLACEMENT):
            due = certain
        before = _before(place, want, number, released)
        if number >= len(have["steps"]):
            return Difference((*before, "no answer"))
        given, flag = have["steps"][number]
        if type(given) is not str:
            return compare.error_or_wrong(text, given, before)
        released += given
        problem = _released(released, certain, due, whole)
        if problem is not None:
            return Difference((*before, f"add returned {given!r}: {problem}"))
        held = pending if released == certain else True
        if not compare.same(held, flag):
            if isinstance(flag, Raised):
                return compare.error_or_wrong(held, flag, (*before, "pending:"))
            why = "text is held back" if held else "nothing is held back"
            line = f"add returned {given!r}, right; but pending is {compare.show(flag)}, and {why}"
            return Difference((*before, line))
    return _end(place, want, have, released, whole)


def _released(released: str, certain: str, due: str, whole: str) -> str | None:
    """What is wrong with the text released so far, or None."""
    if not whole.startswith(released):
        if released.startswith(certain) and REPLACEMENT in released[len(certain) :]:
            return f"a part of a character came out as {REPLACEMENT!r}"
        return f"the text so far should be {certain!r}, and is {released!r}"
    if len(released) > len(certain):
        return f"too early: {released[len(certain) :]!r} is certain only with later tokens"
    if len(released) < len(due):
        return f"too late: {due[len(released) :]!r} is complete, and nothing can change it any more"
    return None


def _end(place: list[str], want: Any, have: Any, released: str, whole: str) -> Difference | None:
    before = _before(place, want, len(want["steps"]), released)
    if type(have["end"]) is not str:
        return compare.error_or_wrong(want["end"], have["end"], (*before, "finish:"))
    if released + have["end"] != whole:
        rest = whole[len(released) :]
        return Difference((*before, f"finish: expected {rest!r}, got {have['end']!r}"))
    if have["changed"]:
        return Difference(
            (*place, f"the text is right, but the list {have['changed']} was changed")
        )
    return None


def _before(place: list[str], want: Any, number: int, released: str) -> tuple[str, ...]:
    """Lines that say where in the stream we are: the last tokens, and the text so far."""
    tokens = want["tokens"]
    groups = len(want["steps"])
    if groups == len(tokens) and number < groups:
        shown = [*tokens[max(0, number + 1 - SHOWN_TOKENS) : number + 1]]
        more = "... " if number + 1 > SHOWN_TOKENS else ""
        line = f"token {number} of {len(tokens)}: {more}{' '.join(shown)}  <- this one"
    elif number < groups:
        line = f"call {number} of add, of {groups}; {compare.counted(len(tokens), 'token')} in all"
    else:
        line = f"after all {compare.counted(len(tokens), 'token')}"
    return (*place, line, f"text before: {released!r}")


def scripts(case: Case, expected: Any, got: Any) -> Difference | None:
    """Compare for `judge.text_run:check_stops`."""
    for number, (want, have) in enumerate(zip(expected, got, strict=True)):
        script = case.payload["scripts"][number]
        place = [case.label, f"stops {script['stops']!r}"
                 + (", include=True" if script["include"] else "")]  # fmt: skip
        if len(expected) > 1:
            place[0] += f", request {number} of {len(expected)} that take turns"
        found = _script(script, place, want, have)
        if found is not None:
            return found
    return None


def _script(script: Any, place: list[str], want: Any, have: Any) -> Difference | None:
    if isinstance(have["end"], Raised) and not have["steps"] and want["steps"]:
        return compare.error_or_wrong(None, have["end"], (*place, "making the stop checker"))
    whole = "".join(shown for shown, _ in want["steps"]) + (want["end"] or "")
    most_held = max(len(stop) for stop in script["stops"]) - 1
    released = certain = text = ""
    for number, (shown, matched) in enumerate(want["steps"]):
        certain += shown
        text += script["pieces"][number]
        pieces = script["pieces"][max(0, number - SHOWN_TOKENS) : number + 1]
        before = (*place, f"pieces {' '.join(map(repr, pieces))}  <- this one, {number}",
                  f"shown before: {released!r}")  # fmt: skip
        if number >= len(have["steps"]):
            return Difference((*before, "no answer"))
        given, flag = have["steps"][number]
        if type(given) is not str:
            return compare.error_or_wrong(shown, given, before)
        released += given
        if flag is None and matched is not None:
            why = ("the text is right, but matched was not set" if released == whole else
                   f"no match was found where {matched!r} was complete")  # fmt: skip
            return Difference((*before, f"matched: expected {matched!r}, got None: {why}"))
        if not compare.same(matched, flag):
            return compare.error_or_wrong(matched, flag, (*before, "matched:"))
        problem = _shown(script, released, certain, whole, matched)
        if problem is None and matched is None and len(released) < len(text) - most_held:
            held = compare.counted(len(text) - len(released), "character")
            problem = f"{held} held back, and {most_held} are enough for the longest stop string"
        if problem is not None:
            return Difference((*before, f"add returned {given!r}: {problem}"))
    return _script_end(place, want, have, released, whole)


def _shown(script: Any, released: str, certain: str, whole: str, matched: Any) -> str | None:
    if not whole.startswith(released):
        return f"shown so far is {released!r}; of the whole answer, {whole!r} is to be shown"
    if matched is not None and released != whole:
        return f"the answer ends here, and {whole[len(released) :]!r} was not shown"
    if len(released) > len(certain) and not script["include"]:
        return f"too early: {released[len(certain) :]!r} could still become a stop string"
    return None


def _script_end(
    place: list[str], want: Any, have: Any, released: str, whole: str
) -> Difference | None:
    if want["end"] is not None:
        before = (*place, f"shown before: {released!r}")
        if type(have["end"]) is not str:
            return compare.error_or_wrong(want["end"], have["end"], (*before, "finish:"))
        if released + have["end"] != whole:
            rest = whole[len(released) :]
            return Difference((*before, f"finish: expected {rest!r}, got {have['end']!r}"))
    if have["changed"]:
        return Difference(
            (*place, f"the text is right, but the list {have['changed']} was changed")
        )
    return None


def at_once(case: Case, expected: Any, got: Any) -> Difference | None:
    """Policy for stop checkers: what can't begin a stop string any more is shown at once."""
    for want, have in zip(expected, got, strict=False):
        for (shown, _), (given, _) in zip(want["steps"], have["steps"], strict=False):
            if shown != given:
                return Difference((case.label, f"expected {shown!r} now, got {given!r}"))
    return None
