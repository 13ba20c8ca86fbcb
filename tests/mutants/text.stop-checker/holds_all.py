# mistake: everything is held back until the end
"""No stream at all."""


class StopChecker:
    def __init__(self, stops, include=False):
        self.stops = tuple(stops)
        self.include = include
        self.buffer = 10**9
        self.text = ""
        self.sent = 0
        self.matched = None

    def add(self, text):
        before = len(self.text)
        self.text += text
        ends = []
        for stop in self.stops:
            place = self.text.find(stop, max(0, before - len(stop) + 1))
            if place >= 0:
                ends.append((place + len(stop), -len(stop), stop))
        if ends:
            end, size, self.matched = min(ends)
            return self.send(end if self.include else end + size)
        return self.send(len(self.text) - self.buffer)

    def send(self, end):
        new = self.text[self.sent : max(end, self.sent)]
        self.sent = max(end, self.sent)
        return new

    def finish(self):
        return self.send(len(self.text))
