# mistake: the known tokens are compared with the chunk alone
# Compares the length of the chunk, so only whole prompts count.


def logits_rows(query_starts, seq_lens, num_tokens):
    if len(seq_lens) != len(num_tokens) or len(query_starts) != len(seq_lens) + 1:
        raise ValueError("the lists do not fit together")
    for computed, known in zip(seq_lens, num_tokens, strict=False):
        if computed > known:
            raise ValueError(f"{computed} tokens are computed, {known} are known")
    rows = []
    for i in range(len(num_tokens)):
        if query_starts[i + 1] - query_starts[i] == num_tokens[i]:
            rows.append(query_starts[i + 1] - 1)
    return rows
