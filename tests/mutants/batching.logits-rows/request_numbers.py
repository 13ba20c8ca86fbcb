# mistake: numbers of requests are given instead of rows of the batch
# Which requests, not which rows.


def logits_rows(query_starts, seq_lens, num_tokens):
    if len(seq_lens) != len(num_tokens) or len(query_starts) != len(seq_lens) + 1:
        raise ValueError("the lists do not fit together")
    for computed, known in zip(seq_lens, num_tokens, strict=False):
        if computed > known:
            raise ValueError(f"{computed} tokens are computed, {known} are known")
    rows = []
    for i, computed in enumerate(seq_lens):
        if computed == num_tokens[i]:
            rows.append(i)
    return rows
