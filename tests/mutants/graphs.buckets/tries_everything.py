# mistake: none
"""All lists, which takes for ever where there are many."""


def bucket_sizes(batch_sizes, max_graphs, max_num_seqs):
    if max_graphs < 1 or max_num_seqs < 1:
        raise ValueError("bounds must be 1 or more")
    if any(n < 1 or n > max_num_seqs for n in batch_sizes):
        raise ValueError("a batch size is out of range")
    from itertools import combinations

    sizes = sorted(set(batch_sizes) - {max_num_seqs})
    best = None
    for count in range(min(max_graphs - 1, len(sizes)) + 1):
        for chosen in combinations(sizes, count):
            full = [*chosen, max_num_seqs]
            rows = sum(min(b for b in full if b >= n) - n for n in batch_sizes)
            if best is None or rows < best[0]:
                best = (rows, full)
    return best[1]
