"""Counts the rows along, from the lengths of the chunks."""

import itertools


def logits_rows(query_starts, seq_lens, num_tokens):
    if len(seq_lens) != len(num_tokens) or len(query_starts) != len(seq_lens) + 1:
        raise ValueError("the lists do not fit together")
    row, rows = -1, []
    lengths = (b - a for a, b in itertools.pairwise(query_starts))
    for length, computed, known in zip(lengths, seq_lens, num_tokens, strict=True):
        row += length
        left = known - computed
        if left < 0:
            raise ValueError(f"{-left} tokens too many")
        if not left:
            rows.append(row)
    return rows
