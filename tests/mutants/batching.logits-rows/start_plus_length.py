# mistake: rows are counted by seq_lens, not by the chunk's own tokens
# Adds all computed tokens to the first row.


def logits_rows(query_starts, seq_lens, num_tokens):
    if len(seq_lens) != len(num_tokens) or len(query_starts) != len(seq_lens) + 1:
        raise ValueError("the lists do not fit together")
    for computed, known in zip(seq_lens, num_tokens, strict=False):
        if computed > known:
            raise ValueError(f"{computed} tokens are computed, {known} are known")
    rows = []
    for i, computed in enumerate(seq_lens):
        if computed == num_tokens[i]:
            rows.append(query_starts[i] + computed - 1)
    return rows
