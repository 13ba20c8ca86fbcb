# mistake: every chunk of one token is sampled from, and no other
# Takes one row for a decode, and more for an unfinished prompt.


def logits_rows(query_starts, seq_lens, num_tokens):
    if len(seq_lens) != len(num_tokens) or len(query_starts) != len(seq_lens) + 1:
        raise ValueError("the lists do not fit together")
    for computed, known in zip(seq_lens, num_tokens, strict=False):
        if computed > known:
            raise ValueError(f"{computed} tokens are computed, {known} are known")
    rows = []
    for i in range(len(seq_lens)):
        length = query_starts[i + 1] - query_starts[i]
        if length == 1:
            rows.append(query_starts[i])
    return rows
