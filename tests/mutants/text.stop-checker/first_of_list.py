# mistake: the first stop string of the list wins
"""The order in which the client wrote them decides."""


class StopChecker:
    def __init__(self, stops, include=False):
        self.stops = tuple(stops)
        self.include = include
        self.buffer = 0 if include else max(map(len, self.stops)) - 1
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
            end, size, self.matched = ends[0]
            return self.send(end if self.include else end + size)
        return self.send(len(self.text) - self.buffer)

    def send(self, end):
        new = self.text[self.sent : max(end, self.sent)]
        self.sent = max(end, self.sent)
        return new

    def finish(self):
        return self.send(len(self.text))
