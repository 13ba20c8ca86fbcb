"""Walks over the rows and asks of each whether a known token follows it."""


class UnknownTokens(ValueError):
    pass


def logits_rows(query_starts, seq_lens, num_tokens):
    requests = len(seq_lens)
    if len(num_tokens) != requests or len(query_starts) != requests + 1:
        raise ValueError("the lists do not fit together")
    for i in range(requests):
        if seq_lens[i] > num_tokens[i]:
            raise UnknownTokens(i)
    rows, request = [], 0
    for row in range(query_starts[-1]):
        while row >= query_starts[request + 1]:
            request += 1
        position = seq_lens[request] - (query_starts[request + 1] - row)
        if position == num_tokens[request] - 1:
            rows.append(row)
    return rows
