# mistake: the stop string that starts first wins
"""Compares beginnings."""

import re


class StopChecker:
    def __init__(self, stops, include=False):
        self.include = include
        self.whole = [re.compile(re.escape(stop)) for stop in stops]
        starts = {stop[:n] for stop in stops for n in range(1, len(stop))}
        longest_first = sorted(starts, key=len, reverse=True)
        pattern = "|".join(map(re.escape, longest_first)) or "(?!)"
        self.start = re.compile(f"(?:{pattern})$", re.DOTALL)
        self.tail = ""
        self.matched = None

    def add(self, text):
        text = self.tail + text
        hits = [hit for hit in (stop.search(text) for stop in self.whole) if hit]
        if hits:
            hit = min(hits, key=lambda found: found.start())
            self.matched = hit.group()
            return text[: hit.end() if self.include else hit.start()]
        begin = len(text)
        for place in range(len(text)):
            found = self.start.match(text, place)
            if found and found.end() == len(text):
                begin = place
                break
        self.tail = text[begin:]
        return text[:begin]

    def finish(self):
        tail, self.tail = self.tail, ""
        return tail
