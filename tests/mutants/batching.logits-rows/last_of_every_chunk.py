# mistake: a row of every chunk, also of those that do not reach the last known token
# Samples from each chunk.


def logits_rows(query_starts, seq_lens, num_tokens):
    if len(seq_lens) != len(num_tokens) or len(query_starts) != len(seq_lens) + 1:
        raise ValueError("the lists do not fit together")
    for computed, known in zip(seq_lens, num_tokens, strict=False):
        if computed > known:
            raise ValueError(f"{computed} tokens are computed, {known} are known")
    return [start - 1 for start in query_starts[1:]]
