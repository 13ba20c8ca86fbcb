# mistake: none
# The rows of the longest requests first.


def logits_rows(query_starts, seq_lens, num_tokens):
    if len(seq_lens) != len(num_tokens) or len(query_starts) != len(seq_lens) + 1:
        raise ValueError("the lists do not fit together")
    for computed, known in zip(seq_lens, num_tokens, strict=False):
        if computed > known:
            raise ValueError(f"{computed} tokens are computed, {known} are known")
    found = [(k, query_starts[i + 1] - 1) for i, k in enumerate(num_tokens) if seq_lens[i] == k]
    return [row for _, row in sorted(found, reverse=True)]
