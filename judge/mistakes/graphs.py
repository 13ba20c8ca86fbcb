"""Owns the known mistakes of `graphs.buckets`: each is wrong in the one way its name says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from judge.solutions.graphs import bucket_sizes

Sizes = Sequence[int]


def largest_of_trace(batch_sizes: Sizes, max_graphs: int, max_num_seqs: int) -> list[int]:
    bucket_sizes(batch_sizes, max_graphs, max_num_seqs)  # the same errors
    if not batch_sizes:
        return []
    return bucket_sizes(batch_sizes, max_graphs, max(batch_sizes))


def each_size_once(batch_sizes: Sizes, max_graphs: int, max_num_seqs: int) -> list[int]:
    bucket_sizes(batch_sizes, max_graphs, max_num_seqs)
    return bucket_sizes(sorted(set(batch_sizes)), max_graphs, max_num_seqs)


def most_frequent(batch_sizes: Sizes, max_graphs: int, max_num_seqs: int) -> list[int]:
    bucket_sizes(batch_sizes, max_graphs, max_num_seqs)
    counts = Counter(size for size in batch_sizes if size != max_num_seqs)
    taken = sorted(counts, key=lambda size: (-counts[size], size))[: max_graphs - 1]
    return sorted([*taken, max_num_seqs])


def evenly(batch_sizes: Sizes, max_graphs: int, max_num_seqs: int) -> list[int]:
    bucket_sizes(batch_sizes, max_graphs, max_num_seqs)
    found = {-(-max_num_seqs * i // max_graphs) for i in range(1, max_graphs + 1)}
    return sorted(found)


def powers(batch_sizes: Sizes, max_graphs: int, max_num_seqs: int) -> list[int]:
    bucket_sizes(batch_sizes, max_graphs, max_num_seqs)
    sizes = [2**i for i in range(max_num_seqs.bit_length()) if 2**i < max_num_seqs]
    return [*sizes[len(sizes) - max_graphs + 1 if max_graphs - 1 < len(sizes) else 0 :],
            max_num_seqs]  # fmt: skip


def quantiles(batch_sizes: Sizes, max_graphs: int, max_num_seqs: int) -> list[int]:
    bucket_sizes(batch_sizes, max_graphs, max_num_seqs)
    ordered = sorted(batch_sizes)
    ends = [ordered[len(ordered) * i // max_graphs - 1] for i in range(1, max_graphs)
            if len(ordered) * i >= max_graphs]  # fmt: skip
    return sorted({*ends, max_num_seqs})


def one_on_top(batch_sizes: Sizes, max_graphs: int, max_num_seqs: int) -> list[int]:
    bucket_sizes(batch_sizes, max_graphs, max_num_seqs)
    return bucket_sizes(batch_sizes, max_graphs + 1, max_num_seqs)


def one_less(batch_sizes: Sizes, max_graphs: int, max_num_seqs: int) -> list[int]:
    bucket_sizes(batch_sizes, max_graphs, max_num_seqs)
    return bucket_sizes(batch_sizes, max(1, max_graphs - 1), max_num_seqs)


def greedy(batch_sizes: Sizes, max_graphs: int, max_num_seqs: int) -> list[int]:
    bucket_sizes(batch_sizes, max_graphs, max_num_seqs)
    counts, chosen = Counter(batch_sizes), [max_num_seqs]

    def waste(sizes: list[int]) -> int:
        return sum(n * (min(s for s in sizes if s >= size) - size) for size, n in counts.items())

    while len(chosen) < max_graphs and waste(chosen):
        chosen.append(min(sorted(counts), key=lambda size: waste([*chosen, size])))
    return sorted(chosen)


def descending(batch_sizes: Sizes, max_graphs: int, max_num_seqs: int) -> list[int]:
    return bucket_sizes(batch_sizes, max_graphs, max_num_seqs)[::-1]


def takes_anything(batch_sizes: Sizes, max_graphs: int, max_num_seqs: int) -> list[int]:
    most = max(max_num_seqs, 1)
    return bucket_sizes([n for n in batch_sizes if 1 <= n <= most], max(max_graphs, 1), most)


def shares(batch_sizes: Sizes, max_graphs: int, max_num_seqs: int) -> list[int]:
    """The right search, for the least sum of wasted shares."""
    bucket_sizes(batch_sizes, max_graphs, max_num_seqs)
    counts = Counter(batch_sizes)
    sizes = sorted({*counts, max_num_seqs})

    def cost(first: int, last: int) -> float:
        bucket = sizes[last]
        return sum(counts[n] * (bucket - n) / bucket for n in sizes[first : last + 1])

    costs = {(i, j): cost(i, j) for j in range(len(sizes)) for i in range(j + 1)}
    best = [(costs[0, last], [sizes[last]]) for last in range(len(sizes))]
    for _ in range(max_graphs - 1):
        best = [
            min(
                [best[last]]
                + [
                    (best[before][0] + costs[before + 1, last], [*best[before][1], sizes[last]])
                    for before in range(last)
                ]
            )
            for last in range(len(sizes))
        ]
    return best[-1][1]
