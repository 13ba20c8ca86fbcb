"""All last rows first, then those whose requests have nothing left."""

from itertools import compress
from operator import sub


def logits_rows(query_starts, seq_lens, num_tokens):
    if not len(query_starts) == len(seq_lens) + 1 == len(num_tokens) + 1:
        raise ValueError(f"{len(query_starts)}, {len(seq_lens)} and {len(num_tokens)} numbers")
    left = list(map(sub, num_tokens, seq_lens))
    if left and min(left) < 0:
        raise ValueError(f"request {left.index(min(left))} computes unknown tokens")
    return [end - 1 for end in compress(query_starts[1:], (n == 0 for n in left))]
