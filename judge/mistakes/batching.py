"""Owns the known mistakes of `batching.logits-rows`: each is wrong in one way."""

from __future__ import annotations

from collections.abc import Sequence

from mini_engine.compute.rows import logits_rows

Numbers = Sequence[int]


def finished(starts: Numbers, lens: Numbers, known: Numbers) -> list[int]:
    """The requests that are sampled; refuses what the contract refuses."""
    wanted = set(logits_rows(starts, lens, known))
    return [request for request in range(len(lens)) if starts[request + 1] - 1 in wanted]


def every_chunk(starts: Numbers, lens: Numbers, known: Numbers) -> list[int]:
    logits_rows(starts, lens, known)
    return [end - 1 for end in starts[1:]]


def one_too_high(starts: Numbers, lens: Numbers, known: Numbers) -> list[int]:
    return [row + 1 for row in logits_rows(starts, lens, known)]


def one_too_low(starts: Numbers, lens: Numbers, known: Numbers) -> list[int]:
    return [row - 1 for row in logits_rows(starts, lens, known)]


def first_rows(starts: Numbers, lens: Numbers, known: Numbers) -> list[int]:
    return [starts[request] for request in finished(starts, lens, known)]


def positions(starts: Numbers, lens: Numbers, known: Numbers) -> list[int]:
    return [lens[request] - 1 for request in finished(starts, lens, known)]


def decodes_only(starts: Numbers, lens: Numbers, known: Numbers) -> list[int]:
    found = finished(starts, lens, known)
    return [starts[i] for i in found if starts[i + 1] - starts[i] == 1]


def single_tokens_always(starts: Numbers, lens: Numbers, known: Numbers) -> list[int]:
    found = finished(starts, lens, known)
    singles = [i for i in range(len(lens)) if starts[i + 1] - starts[i] == 1]
    return [starts[i + 1] - 1 for i in sorted({*found, *singles})]


def single_tokens_only(starts: Numbers, lens: Numbers, known: Numbers) -> list[int]:
    logits_rows(starts, lens, known)
    return [starts[i] for i in range(len(lens)) if starts[i + 1] - starts[i] == 1]


def start_plus_length(starts: Numbers, lens: Numbers, known: Numbers) -> list[int]:
    return [starts[i] + lens[i] - 1 for i in finished(starts, lens, known)]


def requests(starts: Numbers, lens: Numbers, known: Numbers) -> list[int]:
    return finished(starts, lens, known)


def whole_in_one_chunk(starts: Numbers, lens: Numbers, known: Numbers) -> list[int]:
    logits_rows(starts, lens, known)
    return [starts[i + 1] - 1 for i in range(len(lens)) if starts[i + 1] - starts[i] == known[i]]


def minus_one(starts: Numbers, lens: Numbers, known: Numbers) -> list[int]:
    """An entry per request."""
    found = finished(starts, lens, known)
    return [starts[i + 1] - 1 if i in found else -1 for i in range(len(lens))]


def inverted(starts: Numbers, lens: Numbers, known: Numbers) -> list[int]:
    wanted = logits_rows(starts, lens, known)
    return [end - 1 for end in starts[1:] if end - 1 not in wanted]


def one_left(starts: Numbers, lens: Numbers, known: Numbers) -> list[int]:
    logits_rows(starts, lens, known)
    return [starts[i + 1] - 1 for i in range(len(lens)) if lens[i] >= known[i] - 1]


def all_rows(starts: Numbers, lens: Numbers, known: Numbers) -> list[int]:
    found = finished(starts, lens, known)
    return [row for i in found for row in range(starts[i], starts[i + 1])]


def takes_unfit(starts: Numbers, lens: Numbers, known: Numbers) -> list[int]:
    """As zip does it: as many requests as the shortest list has."""
    requests = zip(starts[1:], lens, known, strict=False)
    ends = [(end, computed, total) for end, computed, total in requests]
    if any(computed > total for _, computed, total in ends):
        raise ValueError("more computed than known")
    return [end - 1 for end, computed, total in ends if computed == total]


def takes_unknown(starts: Numbers, lens: Numbers, known: Numbers) -> list[int]:
    if not len(starts) - 1 == len(lens) == len(known):
        raise ValueError("the lists do not fit together")
    return [starts[i + 1] - 1 for i in range(len(lens)) if lens[i] >= known[i]]


def skips_unknown(starts: Numbers, lens: Numbers, known: Numbers) -> list[int]:
    if not len(starts) - 1 == len(lens) == len(known):
        raise ValueError("the lists do not fit together")
    return [starts[i + 1] - 1 for i in range(len(lens)) if lens[i] == known[i]]
