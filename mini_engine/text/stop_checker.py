"""Owns stop strings: finds the one that the output completes first, and shows no part of it.

Text comes in pieces that know nothing of stop strings, so a piece may hold the start of one. What
could still become a stop string is held back. Compare `check_stop_strings` in vLLM's
`vllm/v1/engine/detokenizer.py`.
"""

from __future__ import annotations

from collections.abc import Sequence


class StopChecker:
    """One request's stop strings; see interfaces.StopChecker.

    Of several, the one whose last character comes first ends the request; of those that end
    together, the longest. The order in which they are given does not matter.
    """

    def __init__(self, stops: Sequence[str], include: bool = False) -> None:
        self._stops = tuple(stops)
        self._include = include
        self._held = ""
        self.matched: str | None = None

    def add(self, text: str) -> str:
        """The text that may be shown now; once a stop string is complete, what comes before it."""
        if self.matched is not None:
            raise RuntimeError(f"the output ended with {self.matched!r}; no text may follow")
        # Held text can't hold a whole stop string, and any that begins before it was ruled out.
        self._held += text
        found = self._first_match()
        if found is not None:
            start, self.matched = found
            end = start + len(self.matched) if self._include else start
            shown, self._held = self._held[:end], ""
            return shown
        cut = len(self._held) - self._longest_start()
        shown, self._held = self._held[:cut], self._held[cut:]
        return shown

    def finish(self) -> str:
        """The request ended otherwise: what was held back is no stop string after all."""
        shown, self._held = self._held, ""
        return shown

    def _first_match(self) -> tuple[int, str] | None:
        """(where it starts, stop string) of the first to be complete."""
        places = ((self._held.find(stop), stop) for stop in self._stops)
        found = [(start + len(stop), start, stop) for start, stop in places if start >= 0]
        return min(found)[1:] if found else None

    def _longest_start(self) -> int:
        """Length of the longest end of the text with which a stop string begins."""
        return max(
            (
                length
                for stop in self._stops
                for length in range(1, min(len(stop), len(self._held) + 1))
                if self._held.endswith(stop[:length])
            ),
            default=0,
        )
