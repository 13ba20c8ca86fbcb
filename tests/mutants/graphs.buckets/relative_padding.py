# mistake: padding is measured as a share of the bucket
"""Rows over the bucket's size."""


def bucket_sizes(batch_sizes, max_graphs, max_num_seqs):
    if max_graphs < 1 or max_num_seqs < 1:
        raise ValueError("bounds must be 1 or more")
    if any(n < 1 or n > max_num_seqs for n in batch_sizes):
        raise ValueError("a batch size is out of range")
    known = list(batch_sizes)
    count = {n: known.count(n) for n in {*known, max_num_seqs}}
    ends = sorted(set(known) | {max_num_seqs})
    cost = {
        (a, b): sum(count[n] * (b - n) / b for n in ends if a < n <= b)
        for b in ends
        for a in [0, *ends]
        if a < b
    }
    table = {b: (cost[0, b], (b,)) for b in ends}
    for _ in range(max_graphs - 1):
        table = {
            b: min(
                [table[b]] + [(table[a][0] + cost[a, b], table[a][1] + (b,)) for a in ends if a < b]
            )
            for b in ends
        }
    return list(table[max_num_seqs][1])
