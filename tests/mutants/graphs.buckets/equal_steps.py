# mistake: the sizes are spread evenly, whatever the trace
"""Rounded up shares of max_num_seqs."""


def bucket_sizes(batch_sizes, max_graphs, max_num_seqs):
    if max_graphs < 1 or max_num_seqs < 1:
        raise ValueError("bounds must be 1 or more")
    if any(n < 1 or n > max_num_seqs for n in batch_sizes):
        raise ValueError("a batch size is out of range")
    import math

    return sorted({math.ceil(max_num_seqs * (i + 1) / max_graphs) for i in range(max_graphs)})
