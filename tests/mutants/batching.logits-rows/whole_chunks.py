# mistake: every row of a finished chunk is given, not only its last
# As if the scores of a whole prompt were asked for.


def logits_rows(query_starts, seq_lens, num_tokens):
    if len(seq_lens) != len(num_tokens) or len(query_starts) != len(seq_lens) + 1:
        raise ValueError("the lists do not fit together")
    for computed, known in zip(seq_lens, num_tokens, strict=False):
        if computed > known:
            raise ValueError(f"{computed} tokens are computed, {known} are known")
    rows = []
    for i in range(len(seq_lens)):
        if seq_lens[i] == num_tokens[i]:
            rows.extend(range(query_starts[i], query_starts[i + 1]))
    return rows
