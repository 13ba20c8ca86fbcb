# mistake: the stop string is always shown
"""include is taken for granted."""


class StopChecker:
    def __init__(self, stops, include=False):
        self.stops = list(stops)
        self.include = include
        self.open = [set() for _ in stops]
        self.held = ""
        self.matched = None

    def add(self, text):
        shown = ""
        for letter in text:
            self.held += letter
            done = [stop for number, stop in enumerate(self.stops) if self.step(number, letter)]
            if done:
                self.matched = max(done, key=len)
                cut = 0
                return shown + self.held[: len(self.held) - cut]
            keep = max((n for counts in self.open for n in counts), default=0)
            shown += self.held[: len(self.held) - keep]
            self.held = self.held[len(self.held) - keep :]
        return shown

    def step(self, number, letter):
        stop = self.stops[number]
        counts = {n + 1 for n in self.open[number] | {0} if stop[n] == letter}
        self.open[number] = counts - {len(stop)}
        return len(stop) in counts

    def finish(self):
        return self.held
