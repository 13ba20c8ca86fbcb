# mistake: -1 is given for a request that is not sampled
# Keeps one entry per request.


def logits_rows(query_starts, seq_lens, num_tokens):
    if len(seq_lens) != len(num_tokens) or len(query_starts) != len(seq_lens) + 1:
        raise ValueError("the lists do not fit together")
    for computed, known in zip(seq_lens, num_tokens, strict=False):
        if computed > known:
            raise ValueError(f"{computed} tokens are computed, {known} are known")
    triples = zip(query_starts[1:], seq_lens, num_tokens, strict=False)
    return [end - 1 if computed == known else -1 for end, computed, known in triples]
