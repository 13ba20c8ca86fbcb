# mistake: more computed than known goes unnoticed, and samples
# Greater or equal, and no check.


def logits_rows(query_starts, seq_lens, num_tokens):
    if len(seq_lens) != len(num_tokens) or len(query_starts) != len(seq_lens) + 1:
        raise ValueError("the lists do not fit together")
    triples = zip(query_starts[1:], seq_lens, num_tokens, strict=False)
    return [end - 1 for end, computed, known in triples if computed >= known]
