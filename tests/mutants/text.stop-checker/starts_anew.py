# mistake: the search starts anew behind a false start
"""One counter, which goes back to zero: the beginning inside the beginning is lost."""


class StopChecker:
    def __init__(self, stops, include=False):
        self.stops, self.include = list(stops), include
        self.candidate, self.matched = "", None

    def add(self, text):
        shown = []
        for letter in text:
            self.candidate += letter
            if self.candidate in self.stops:
                self.matched = self.candidate
                if self.include:
                    shown.append(self.candidate)
                self.candidate = ""
                break
            if not any(stop.startswith(self.candidate) for stop in self.stops):
                shown.append(self.candidate)
                self.candidate = ""
        return "".join(shown)

    def finish(self):
        return self.candidate
