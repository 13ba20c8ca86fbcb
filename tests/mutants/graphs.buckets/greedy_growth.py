# mistake: the best next size is added again and again
"""Never takes a choice back."""


def bucket_sizes(batch_sizes, max_graphs, max_num_seqs):
    if max_graphs < 1 or max_num_seqs < 1:
        raise ValueError("bounds must be 1 or more")
    if any(n < 1 or n > max_num_seqs for n in batch_sizes):
        raise ValueError("a batch size is out of range")

    def rows(sizes):
        return sum(min(b for b in sizes if b >= n) - n for n in batch_sizes)

    sizes = [max_num_seqs]
    for _ in range(max_graphs - 1):
        options = sorted(set(batch_sizes) - set(sizes))
        if not options or rows(sizes) == 0:
            break
        sizes = sorted(sizes + [min(options, key=lambda n: rows(sizes + [n]))])
    return sizes
