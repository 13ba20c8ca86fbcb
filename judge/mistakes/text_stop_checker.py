"""Owns the known mistakes of `text.stop-checker`: each is wrong in one way."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, ClassVar


class PlainChecker:
    """Right, and written so that one line at a time can be made wrong."""

    def __init__(self, stops: Sequence[str], include: bool = False) -> None:
        self.stops = list(stops)
        self.include = include
        self.held = ""
        self.matched: Any = None

    def found(self, text: str) -> list[tuple[int, int, str]]:
        """(end, start, stop string) of all that are in the text."""
        places = [(text.find(stop), stop) for stop in self.stops]
        return [(start + len(stop), start, stop) for start, stop in places if start >= 0]

    def chosen(self, found: list[tuple[int, int, str]]) -> tuple[int, int, str]:
        return min(found)

    def keep(self, text: str) -> int:
        """How many characters are held back."""
        lengths = [
            length
            for stop in self.stops
            for length in range(1, len(stop))
            if text.endswith(stop[:length])
        ]
        return max(lengths, default=0)

    def add(self, text: str) -> str:
        text = self.held + text
        found = self.found(text)
        if found:
            end, start, self.matched = self.chosen(found)
            return text[: end if self.include else start]
        keep = self.keep(text)
        self.held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def finish(self) -> str:
        return self.held


class EachAlone(PlainChecker):
    def keep(self, text: str) -> int:
        return 0


class HoldsNothing(PlainChecker):
    """Finds stop strings across pieces, but too late: the beginning was shown."""

    def __init__(self, stops: Sequence[str], include: bool = False) -> None:
        super().__init__(stops, include)
        self.sent = 0

    def add(self, text: str) -> str:
        self.held += text
        found = self.found(self.held)
        end = len(self.held)
        if found:
            last, start, self.matched = self.chosen(found)
            end = last if self.include else start
        new = self.held[self.sent : end]
        self.sent = max(self.sent, end)
        return new

    def finish(self) -> str:
        return ""


class FirstOfList(PlainChecker):
    def chosen(self, found: list[tuple[int, int, str]]) -> tuple[int, int, str]:
        return found[0]


class FirstStart(PlainChecker):
    def chosen(self, found: list[tuple[int, int, str]]) -> tuple[int, int, str]:
        return min(found, key=lambda entry: entry[1])


class Shortest(PlainChecker):
    def chosen(self, found: list[tuple[int, int, str]]) -> tuple[int, int, str]:
        return min(found, key=lambda entry: (entry[0], -entry[1]))


class ShowsRest(PlainChecker):
    def add(self, text: str) -> str:
        whole = self.held + text
        shown = super().add(text)
        return whole if self.matched is not None else shown


class AlwaysIncludes(PlainChecker):
    def __init__(self, stops: Sequence[str], include: bool = False) -> None:
        super().__init__(stops, True)


class NeverIncludes(PlainChecker):
    def __init__(self, stops: Sequence[str], include: bool = False) -> None:
        super().__init__(stops)


class LosesHeld(PlainChecker):
    def finish(self) -> str:
        return ""


class LosesFalseStart(PlainChecker):
    """Joins old and new only to search; shows of the new."""

    def add(self, text: str) -> str:
        before = len(self.held)
        return super().add(text)[before:]


class HoldsAll(PlainChecker):
    def keep(self, text: str) -> int:
        return len(text)


class ShortestStart(PlainChecker):
    def keep(self, text: str) -> int:
        lengths = [
            length
            for stop in self.stops
            for length in range(1, len(stop))
            if text.endswith(stop[:length])
        ]
        return min(lengths, default=0)


class WholePieceOnly(PlainChecker):
    def keep(self, text: str) -> int:
        return len(text) if any(stop.startswith(text) for stop in self.stops) else 0


class StartsAnew(PlainChecker):
    """Counts matching characters, and goes back to nothing at one that doesn't fit."""

    def add(self, text: str) -> str:
        shown = ""
        for character in text:
            whole = self.held + character
            fits = [stop for stop in self.stops if stop.startswith(whole)]
            done = [stop for stop in fits if stop == whole]
            if done:
                self.matched, self.held = done[0], ""
                return shown + (whole if self.include else "")
            self.held = whole if fits else ""
            shown += "" if fits else whole
        return shown


class LastOccurrence(PlainChecker):
    def found(self, text: str) -> list[tuple[int, int, str]]:
        places = [(text.rfind(stop), stop) for stop in self.stops]
        return [(start + len(stop), start, stop) for start, stop in places if start >= 0]


class HoldsForFirst(PlainChecker):
    def keep(self, text: str) -> int:
        first = self.stops[0]
        return max((n for n in range(1, len(first)) if text.endswith(first[:n])), default=0)


class NeverMatched(PlainChecker):
    def add(self, text: str) -> str:
        shown = super().add(text)
        self.matched = None
        return shown


class MatchedTrue(PlainChecker):
    def add(self, text: str) -> str:
        shown = super().add(text)
        self.matched = True if self.matched is not None else None
        return shown


class _OfThread(threading.local):
    """The self-test grades in several threads: what requests share stays in one of them."""

    held = ""


class SharedHeld(PlainChecker):
    shared: ClassVar[_OfThread] = _OfThread()

    def __init__(self, stops: Sequence[str], include: bool = False) -> None:
        super().__init__(stops, include)
        self.shared.held = ""  # as if the program had just started

    def add(self, text: str) -> str:
        self.held = self.shared.held
        shown = super().add(text)
        self.shared.held = self.held
        return shown

    def finish(self) -> str:
        return self.shared.held


class Buffered(PlainChecker):
    """Also right: holds as many characters as could ever be needed, with include none at all."""

    def __init__(self, stops: Sequence[str], include: bool = False) -> None:
        super().__init__(stops, include)
        self.text = ""
        self.sent = 0

    def add(self, text: str) -> str:
        self.text += text
        found = self.found(self.text)
        if found:
            end, start, self.matched = self.chosen(found)
            return self.send(end if self.include else start)
        return self.send(len(self.text) - (0 if self.include else max(map(len, self.stops)) - 1))

    def send(self, end: int) -> str:
        new = self.text[self.sent : max(end, self.sent)]
        self.sent = max(end, self.sent)
        return new

    def finish(self) -> str:
        return self.send(len(self.text))


class BufferedFirstOfList(Buffered, FirstOfList):
    pass


class BufferedFirstStart(Buffered, FirstStart):
    pass


class BufferedShortest(Buffered, Shortest):
    pass


class BufferedLastOccurrence(Buffered, LastOccurrence):
    pass


class BufferedLosesHeld(Buffered, LosesHeld):
    pass
