# mistake: powers of two, whatever the trace
"""As many of the largest as there are graphs."""


def bucket_sizes(batch_sizes, max_graphs, max_num_seqs):
    if max_graphs < 1 or max_num_seqs < 1:
        raise ValueError("bounds must be 1 or more")
    if any(n < 1 or n > max_num_seqs for n in batch_sizes):
        raise ValueError("a batch size is out of range")
    sizes, size = [], 1
    while size < max_num_seqs:
        sizes.append(size)
        size *= 2
    while len(sizes) > max_graphs - 1:
        sizes.pop(0)
    return sizes + [max_num_seqs]
