"""Owns the reference of `graphs.buckets`: the sizes to capture for the batch sizes of a trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate


def bucket_sizes(batch_sizes: Sequence[int], max_graphs: int, max_num_seqs: int) -> list[int]:
    """At most `max_graphs` sizes, ascending, the last `max_num_seqs`, that waste the fewest rows.

    Each number of `batch_sizes` is a step, which runs in the smallest size that holds it. Only
    sizes that occur are worth a graph: a smaller bucket that still holds the same steps wastes
    less. So, from the smallest size on: the best choice that ends at one size extends the best
    choice that ends at a smaller one and has a graph less.
    Raises ValueError for bounds below 1 and for batch sizes outside 1 to `max_num_seqs`.
    """
    if max_graphs < 1 or max_num_seqs < 1:
        raise ValueError(
            f"max_graphs and max_num_seqs must be 1 or more, got {max_graphs} and {max_num_seqs}"
        )
    for size in batch_sizes:
        if not 1 <= size <= max_num_seqs:
            raise ValueError(f"a batch has 1 to {max_num_seqs} requests, got one of {size}")
    counts = Counter(batch_sizes)
    sizes = sorted({*counts, max_num_seqs})
    steps = [0, *accumulate(counts[size] for size in sizes)]
    rows = [0, *accumulate(counts[size] * size for size in sizes)]

    def wasted(first: int, last: int) -> int:
        """Empty rows if the steps of these sizes all run in the last one."""
        held = steps[last + 1] - steps[first]
        return sizes[last] * held - (rows[last + 1] - rows[first])

    best = [(wasted(0, last), [sizes[last]]) for last in range(len(sizes))]
    for _ in range(max_graphs - 1):
        best = [
            min(
                [best[last]]
                + [
                    (best[before][0] + wasted(before + 1, last), [*best[before][1], sizes[last]])
                    for before in range(last)
                ]
            )
            for last in range(len(sizes))
        ]
    return best[-1][1]
