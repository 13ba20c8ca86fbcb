"""A class that holds the times of a request; the functions only ask it."""


class Times:
    def __init__(self, arrival, tokens):
        self.arrival, self.tokens = arrival, list(tokens)
        if self.tokens != sorted(self.tokens):
            raise ValueError("tokens out of order")

    @property
    def ttft(self):
        if not self.tokens:
            raise ValueError("no tokens")
        if self.arrival > self.tokens[0]:
            raise ValueError("arrival after the first token")
        return self.tokens[0] - self.arrival

    @property
    def gaps(self):
        return [self.tokens[i + 1] - self.tokens[i] for i in range(len(self.tokens) - 1)]

    @property
    def tpot(self):
        return sum(self.gaps) / len(self.gaps) if self.gaps else None


def time_to_first_token(arrival, token_times):
    return Times(arrival, token_times).ttft


def inter_token_latencies(token_times):
    return Times(0.0, token_times).gaps


def time_per_output_token(token_times):
    return Times(0.0, token_times).tpot


def percentile(values, q):
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values")
    if q < 0 or q > 100:
        raise ValueError("q out of range")
    if len(ordered) == 1:
        return ordered[0]
    index = min(int(q * (len(ordered) - 1) / 100), len(ordered) - 2)
    share = q * (len(ordered) - 1) / 100 - index
    return ordered[index] + share * (ordered[index + 1] - ordered[index])


def goodput(requests, duration, *, max_ttft, max_tpot):
    if duration <= 0:
        raise ValueError("duration must be positive")
    good = 0
    for request in requests:
        times = Times(*request)
        if not times.tokens or times.ttft > max_ttft:
            continue
        if times.tpot is not None and times.tpot > max_tpot:
            continue
        good += 1
    return good / duration
