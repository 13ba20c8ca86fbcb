"""A table over all sizes from 0 to max_num_seqs, also those that never occur."""


def bucket_sizes(batch_sizes, max_graphs, max_num_seqs):
    if max_graphs < 1 or max_num_seqs < 1:
        raise ValueError("bounds must be 1 or more")
    if any(n < 1 or n > max_num_seqs for n in batch_sizes):
        raise ValueError("a batch size is out of range")
    below, tokens = [0] * (max_num_seqs + 1), [0] * (max_num_seqs + 1)
    for n in batch_sizes:
        below[n] += 1
        tokens[n] += n
    for n in range(1, max_num_seqs + 1):
        below[n] += below[n - 1]
        tokens[n] += tokens[n - 1]

    def cost(low, high):
        return high * (below[high] - below[low]) - (tokens[high] - tokens[low])

    waste = [cost(0, high) for high in range(max_num_seqs + 1)]
    choice = []
    for _ in range(min(max_graphs, max_num_seqs) - 1):
        came_from = [
            min(range(1, high), key=lambda low: waste[low] + cost(low, high), default=0)
            for high in range(max_num_seqs + 1)
        ]
        waste = [
            waste[low] + cost(low, high) if low else waste[high]
            for high, low in enumerate(came_from)
        ]
        choice.append(came_from)
    sizes = [max_num_seqs]
    for came_from in reversed(choice):
        if came_from[sizes[0]]:
            sizes.insert(0, came_from[sizes[0]])
    return sizes
