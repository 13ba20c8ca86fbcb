"""Pairs of neighbours with itertools, exact sums, and a heap instead of a sort."""

import heapq
import math
from itertools import pairwise


def time_to_first_token(arrival, token_times):
    inter_token_latencies(token_times)
    match list(token_times):
        case []:
            raise ValueError("without tokens there is no first one")
        case [first, *_] if first < arrival:
            raise ValueError("answered before it was asked")
        case [first, *_]:
            return first - arrival


def inter_token_latencies(token_times):
    gaps = []
    for earlier, later in pairwise(token_times):
        if earlier > later:
            raise ValueError(f"{later} follows {earlier}")
        gaps.append(later - earlier)
    return gaps


def time_per_output_token(token_times):
    gaps = inter_token_latencies(token_times)
    try:
        return math.fsum(gaps) / len(gaps)
    except ZeroDivisionError:
        return None


def percentile(values, q):
    heap = list(values)
    heapq.heapify(heap)
    if len(heap) == 0:
        raise ValueError("no values")
    if q < 0 or q > 100:
        raise ValueError("not a percentage")
    whole, part = divmod(q * (len(heap) - 1), 100)
    for _ in range(int(whole)):
        heapq.heappop(heap)
    low = heapq.heappop(heap)
    if not part:
        return low
    weight = part / 100
    return (1 - weight) * low + weight * heap[0]


def goodput(requests, duration, *, max_ttft, max_tpot):
    if duration <= 0:
        raise ValueError("nothing was measured")

    def good(arrival, token_times):
        if len(token_times) == 0:
            return False
        late = time_to_first_token(arrival, token_times) > max_ttft
        slow = len(token_times) > 1 and time_per_output_token(token_times) > max_tpot
        return not (late or slow)

    return len([1 for request in requests if good(*request)]) / duration
