"""Owns the sizes of the captured decode batches, and the rule that picks one. No torch."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from mini_engine.config import require_int

STEP = 8


def graph_buckets(max_num_seqs: int) -> tuple[int, ...]:
    """The batch sizes to capture, ascending: 1, 2, 4, 8, then every 8, and `max_num_seqs` itself.

    A batch of n runs in the smallest bucket of n or more, so that up to 8 requests less than half
    of the rows are padding, and beyond that fewer than 8 rows are. The last bucket is
    `max_num_seqs`: a larger batch can't come, and buckets that end below it would leave the fullest
    batches without a graph. Compare the sizes in vLLM's `CompilationConfig`.
    """
    require_int("graph_buckets", "max_num_seqs", max_num_seqs, 1)
    sizes = [1, 2, 4, *range(STEP, max_num_seqs, STEP)]
    return (*(size for size in sizes if size < max_num_seqs), max_num_seqs)


def choose_bucket(buckets: Sequence[int], num_requests: int) -> int | None:
    """The smallest bucket that holds so many requests, None if there is none.

    `buckets` ascend.
    """
    index = bisect_left(buckets, num_requests)
    return buckets[index] if index < len(buckets) else None
