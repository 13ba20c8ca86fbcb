# mistake: lists that do not fit together go unnoticed
# No check of lengths.


def logits_rows(query_starts, seq_lens, num_tokens):
    for computed, known in zip(seq_lens, num_tokens, strict=False):
        if computed > known:
            raise ValueError(f"{computed} tokens are computed, {known} are known")
    triples = zip(query_starts[1:], seq_lens, num_tokens, strict=False)
    return [end - 1 for end, computed, known in triples if computed == known]
