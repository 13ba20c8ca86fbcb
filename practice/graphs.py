"""Exercises of chapter 07: CUDA graphs, and what they ask of a decode step.

Write between the two marks of an exercise; helpers of your own may stand there too. Everything else
in this file stays as it is. The first exercise needs no torch: import torch inside the code that
needs it, not up here. Grade with

    python practice/judge.py graphs.buckets
    python practice/judge.py graphs.static-buffers
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mini_engine.interfaces import Batch, ExerciseNotStarted

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

# --- graphs.static-buffers: edit from here ---


class StaticBuffers:
    """The inputs of captured decode steps: tensors made once, filled before every replay.

    A graph reads the memory of the tensors that were there at capture. A new tensor under an old
    name is never seen, so the numbers of a step are written into the old ones.
    """

    def __init__(
        self, most_rows: int, width: int, scratch_block: int, block_size: int, device: Any
    ) -> None:
        """Room for `most_rows` requests with one token each; at first all rows are padding.

        width          columns of the block tables: enough for the longest request
        scratch_block  the id of a block that belongs to no request
        block_size     slots in a block
        device         where the tensors are, as torch takes it

        A padding row computes something, too, and must harm nobody with it:
            token_ids 0, positions 0, seq_lens 1, its whole row of block_tables `scratch_block`,
            slot_mapping the first slot of `scratch_block`
        """
        raise ExerciseNotStarted("StaticBuffers.__init__")

    def views(self, bucket: int) -> Batch:
        """The first `bucket` rows, for a graph of that size to read: Batch(token_ids=..., ...).

        All int64, on the device:
            token_ids, positions, slot_mapping, seq_lens  [bucket]
            block_tables                                  [bucket, width]
            query_starts  [bucket + 1]  0, 1, 2, ...: each request has one row
            logits_rows   [bucket]      0, 1, 2, ...: each is sampled

        It is called once for every bucket, before capture. What is filled in later must appear in
        the tensors returned here, in the same memory.
        """
        raise ExerciseNotStarted("StaticBuffers.views")

    def fill(self, batch: Batch, bucket: int) -> None:
        """Write a step into the first rows: one token for each of n requests, n <= bucket.

        `batch` is on the CPU, has the same tensors with n rows, and block tables of any width up
        to `width`. The first n rows become the batch's. In block_tables, the columns behind the
        batch's own become `scratch_block`. Rows n to bucket - 1 become padding again, whatever an
        earlier step has left in them. Nobody reads rows from `bucket` on.

        The batch isn't changed, and its tensors may hold other numbers as soon as this returns.
        Raises ValueError, changing nothing, if n > bucket or the batch's tables are too wide.
        """
        raise ExerciseNotStarted("StaticBuffers.fill")


# --- end of graphs.static-buffers ---

# --- graphs.runner: edit from here ---


class GraphRunner:
    """Runs decode steps as replayed graphs; fills the slot `graph_runner` of the engine.

    These are ready-made; import them inside the methods:

        mini_engine.compute.graph_buckets    graph_buckets(max_num_seqs), choose_bucket(buckets, n)
        mini_engine.compute.graph_buffers    StaticBuffers, or take your own from above
        mini_engine.compute.attention_fixed  FixedWidthAttention: plan(batch), then one call a layer
        mini_engine.compute.cuda_graphs      warm_up(forward, device), new_graph(device),
                                             with capture(graph, pool): ...
    """

    bucket: int | None  # the size of the graph that the last run replayed, None if it did not

    def __init__(self, model: Any, kv_cache: Any, config: Any) -> None:
        """Capture one graph for every size of `graph_buckets(config.max_num_seqs)`.

        model     model(token_ids, positions, attend) gives final hidden states, one row a token;
                  it calls attend(layer, query, key, value) in each layer, which must write key and
                  value into the cache and return the attention. Also: model.config, dtype, device
        kv_cache  write(layer, key, value, slot_mapping) and layer(layer), see KVCache in
                  mini_engine/interfaces.py; it has one block more than `config.num_blocks`, whose
                  id is `config.num_blocks`: the scratch block of padding rows
        config    block_size, num_blocks, max_model_len, max_num_seqs; none of them is None

        The sizes are captured from the largest to the smallest, each after a warm-up of the same
        size, all in the pool of the first. Block tables are as wide as `max_model_len` tokens need.
        All of it under torch.inference_mode(), and nothing that `forward` runs may look at what the
        tensors hold.
        """
        raise ExerciseNotStarted("GraphRunner.__init__")

    def run(self, batch: Batch) -> Any:
        """The final hidden states of a decode batch, [requests, hidden_size], from one replay.

        `batch` is on the CPU. Only a batch with one token for each request, no more requests than
        the largest graph has rows and block tables no wider than the buffers can be replayed: fill
        the buffers, replay the smallest graph that holds it, set `bucket` to its size, and return
        the rows of the requests, without those of padding. The model is not called.
        For every other batch nothing is done: `bucket` becomes None, and None is returned.
        """
        raise ExerciseNotStarted("GraphRunner.run")


# --- end of graphs.runner ---

# --- graphs.find-the-bug: edit from here ---


def broken_rules() -> dict[str, str]:
    """Which rule does each of the six decode steps in judge/graph_bugs.py break?

    Each step, A to F, is small and nearly right, and breaks exactly one of these rules:

        "waits"      while a graph is captured, nothing waits for a number of the GPU
        "shapes"     no shape follows from numbers that the graph computes or reads
        "addresses"  inputs stay in the memory that they had at capture
        "numbers"    what changes from step to step is in tensors, not in numbers of Python
        "results"    a result is used or copied before the next replay
        "padding"    rows that only fill up harm nobody
        "warm-up"    what the first call of a step prepares is prepared before capture
        "largest"    the largest graph holds the fullest step that can come

    No rule is broken twice, so two of them are not broken at all. Read the code; what happens when
    a step is captured and replayed is shown by

        python -c "from judge.graph_bugs import happens; print(*happens('A'), sep='\\n')"

    Returns the names of the rules by step: {"A": ..., "B": ..., ..., "F": ...}.
    """
    raise ExerciseNotStarted("broken_rules")


# --- end of graphs.find-the-bug ---
