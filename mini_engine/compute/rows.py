"""Owns the choice of the rows of a flat batch that the model's last matrix reads. No torch."""

from __future__ import annotations

from collections.abc import Sequence


def logits_rows(
    query_starts: Sequence[int], seq_lens: Sequence[int], known: Sequence[int]
) -> list[int]:
    """The rows of a flat batch whose next token is wanted, in batch order.

    Request i has the rows query_starts[i] to query_starts[i + 1] - 1, and seq_lens[i] of the
    known[i] tokens that are known of it are computed once this step is done. Its last row is wanted
    if these are all: the row of an earlier token would predict a token that is known.
    Raises ValueError if the lengths of the lists do not fit together, or if a request computes
    tokens that nobody knows yet.
    """
    if not len(query_starts) - 1 == len(seq_lens) == len(known):
        raise ValueError(
            f"{len(seq_lens)} seq_lens need as many of known and one more of query_starts, got "
            f"{len(known)} and {len(query_starts)}"
        )
    rows = []
    for request, (computed, total) in enumerate(zip(seq_lens, known, strict=True)):
        if computed > total:
            raise ValueError(
                f"request {request} of the batch computes {computed} of {total} tokens"
            )
        if computed == total:
            rows.append(query_starts[request + 1] - 1)
    return rows
