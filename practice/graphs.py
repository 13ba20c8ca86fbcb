"""Exercises of chapter 07: CUDA graphs, and what they ask of a decode step.

Write between the two marks of an exercise; helpers of your own may stand there too. Everything else
in this file stays as it is. The first exercise needs no torch: import torch inside the code that
needs it, not up here. Grade with

    python practice/judge.py graphs.buckets
"""

from __future__ import annotations

from collections.abc import Sequence

from mini_engine.interfaces import ExerciseNotStarted

# --- graphs.buckets: edit from here ---


def bucket_sizes(batch_sizes: Sequence[int], max_graphs: int, max_num_seqs: int) -> list[int]:
    """The batch sizes to capture as graphs, so that the steps of a trace waste the fewest rows.

        batch_sizes   one number for each decode step of a trace: how many requests it computed
        max_graphs    at most so many sizes: each captured graph costs memory and time
        max_num_seqs  the most requests that the engine can ever run together

    A step of n requests runs in the smallest captured size of n or more. The rows beyond n are
    padding: size - n of them are wasted. Another day may bring a fuller step than this trace did,
    so `max_num_seqs` is always one of the sizes, also if no step of the trace needs it.

    Example: bucket_sizes([1, 1, 1, 5, 6], 2, 8) is [1, 8]. The steps of 5 and 6 run in 8 and waste
    3 + 2 rows; [6, 8] would waste 5 + 5 + 5 + 1, and [1, 6] has no graph for 8 requests.

    Returns a list of ints, ascending, none twice, the last one `max_num_seqs`. The wasted rows of
    all steps together are the fewest that are possible; where several lists waste the fewest, any
    of them is right, also one with fewer sizes. No argument is changed. A trace of hundreds of
    steps with 40 different sizes is among the cases: trying all lists is too slow there.

    Raises ValueError if max_graphs or max_num_seqs is below 1, or if a batch size lies outside
    1 to max_num_seqs.
    """
    raise ExerciseNotStarted("bucket_sizes")


# --- end of graphs.buckets ---
