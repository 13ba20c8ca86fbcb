# mistake: the most frequent sizes are taken
"""Sorted by count, then by size."""


def bucket_sizes(batch_sizes, max_graphs, max_num_seqs):
    if max_graphs < 1 or max_num_seqs < 1:
        raise ValueError("bounds must be 1 or more")
    if any(n < 1 or n > max_num_seqs for n in batch_sizes):
        raise ValueError("a batch size is out of range")
    frequency = {}
    for n in batch_sizes:
        if n < max_num_seqs:
            frequency[n] = frequency.get(n, 0) + 1
    order = sorted(frequency.items(), key=lambda pair: (-pair[1], pair[0]))
    return sorted([n for n, _ in order[: max_graphs - 1]] + [max_num_seqs])
