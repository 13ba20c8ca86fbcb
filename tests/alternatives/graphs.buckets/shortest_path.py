"""The cheapest path with few edges in a graph of sizes."""

from collections import Counter


def bucket_sizes(batch_sizes, max_graphs, max_num_seqs):
    if max_graphs < 1 or max_num_seqs < 1:
        raise ValueError("bounds must be 1 or more")
    if any(n < 1 or n > max_num_seqs for n in batch_sizes):
        raise ValueError("a batch size is out of range")
    counts = Counter(batch_sizes)
    nodes = [0, *sorted(set(batch_sizes) | {max_num_seqs})]
    edges = {}
    for i, a in enumerate(nodes):
        weight = steps = 0
        for b, previous in zip(nodes[i + 1 :], nodes[i:], strict=False):
            weight += steps * (b - previous)
            steps += counts[b]
            edges[a, b] = weight
    reach = {0: (0, [])}
    answer = None
    for _ in range(max_graphs):
        further = {}
        for (a, b), weight in edges.items():
            if a in reach:
                total = reach[a][0] + weight
                if b not in further or total < further[b][0]:
                    further[b] = (total, [*reach[a][1], b])
        reach = further
        if max_num_seqs in reach and (answer is None or reach[max_num_seqs][0] < answer[0]):
            answer = reach[max_num_seqs]
    return answer[1]
