"""From the last request to the first, then turned round."""


def logits_rows(query_starts, seq_lens, num_tokens):
    if len(seq_lens) != len(num_tokens) or len(query_starts) != len(seq_lens) + 1:
        raise ValueError("one start more than requests is needed")
    starts, rows = list(query_starts), []
    for computed, known in zip(reversed(seq_lens), reversed(num_tokens), strict=True):
        end = starts.pop()
        if computed > known:
            raise ValueError(f"{computed} of {known} tokens")
        if computed == known:
            rows.append(end - 1)
    return rows[::-1]
