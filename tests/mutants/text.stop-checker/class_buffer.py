# mistake: all requests share what is held back
"""What is held belongs to the class."""


class StopChecker:
    held = ""

    def __init__(self, stops, include=False):
        self.stops = sorted(stops, key=len, reverse=True)
        self.include = include
        self.matched = None
        StopChecker.held = ""

    def add(self, text):
        text = StopChecker.held + text
        ends = {stop: text.find(stop) + len(stop) for stop in self.stops if stop in text}
        if ends:
            self.matched = min(ends, key=lambda stop: (ends[stop], -len(stop)))
            cut = 0 if self.include else len(self.matched)
            return text[: ends[self.matched] - cut]
        keep = 0
        for stop in self.stops:
            for n in range(1, len(stop)):
                keep = n if n > keep and text.endswith(stop[:n]) else keep
        StopChecker.held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def finish(self):
        return StopChecker.held
