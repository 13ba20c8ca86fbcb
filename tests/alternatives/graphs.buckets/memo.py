"""Recursion from the largest size down, remembered."""

from collections import Counter
from functools import lru_cache


def bucket_sizes(batch_sizes, max_graphs, max_num_seqs):
    if max_graphs < 1 or max_num_seqs < 1:
        raise ValueError("bounds must be 1 or more")
    if any(n < 1 or n > max_num_seqs for n in batch_sizes):
        raise ValueError("a batch size is out of range")
    counts = Counter(batch_sizes)
    sizes = sorted(counts.keys() | {max_num_seqs})

    @lru_cache(None)
    def best(last, graphs):
        """Least waste of sizes up to number `last`, which is a graph, with so many graphs."""
        waste = 0
        found = None
        for first in range(last, -1, -1):
            waste += counts[sizes[first]] * (sizes[last] - sizes[first])
            rest = (0, ()) if first == 0 else None
            if first and graphs > 1:
                rest = best(first - 1, graphs - 1)
            if rest is not None and (found is None or waste + rest[0] < found[0]):
                found = (waste + rest[0], (*rest[1], sizes[last]))
        return found

    return list(best(len(sizes) - 1, max_graphs)[1])
