"""Falls back on fewer sizes: the table keeps exactly k graphs, the best k wins."""

import numpy as np


def bucket_sizes(batch_sizes, max_graphs, max_num_seqs):
    if max_graphs < 1 or max_num_seqs < 1:
        raise ValueError("bounds must be 1 or more")
    if any(n < 1 or n > max_num_seqs for n in batch_sizes):
        raise ValueError("a batch size is out of range")
    if not batch_sizes:
        return [max_num_seqs]
    ends = np.array(sorted(set(batch_sizes) | {max_num_seqs}))
    count = np.array([batch_sizes.count(n) for n in ends])
    held, rows = np.cumsum(count), np.cumsum(count * ends)
    # pair[i, j]: waste of the sizes after number i up to number j in size j
    pair = ends[None, :] * (held[None, :] - held[:, None]) - (rows[None, :] - rows[:, None])
    pair = np.where(np.arange(len(ends))[:, None] < np.arange(len(ends)), pair, 10**12)
    layers, back = [ends * held - rows], []
    for _ in range(min(max_graphs, len(ends)) - 1):
        total = layers[-1][:, None] + pair
        back.append(total.argmin(axis=0))
        layers.append(total.min(axis=0))
    graphs = min(range(len(layers)), key=lambda k: layers[k][-1])
    place, sizes = len(ends) - 1, [max_num_seqs]
    for k in range(graphs, 0, -1):
        place = int(back[k - 1][place])
        sizes.append(int(ends[place]))
    return sizes[::-1]
