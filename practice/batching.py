"""Exercises of chapter 03: the flat batch, from its bookkeeping to attention over it.

Write between the two marks of an exercise; helpers of your own may stand there too. Everything else
in this file stays as it is. The rows are chosen without torch: import torch inside the functions
that need it, not up here. Grade with

    python practice/judge.py batching.logits-rows
    python practice/judge.py batching.build-batch
    python practice/judge.py batching.varlen-attention
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mini_engine.interfaces import Batch, Chunk, ExerciseNotStarted

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Batch", "build_batch", "logits_rows", "varlen_attention"]

# --- batching.logits-rows: edit from here ---


def logits_rows(
    query_starts: Sequence[int], seq_lens: Sequence[int], known: Sequence[int]
) -> list[int]:
    """The rows of a flat batch from which a next token is sampled, in batch order.

    The batch holds one chunk of each request, packed one behind the other:
        query_starts  one number more than there are requests: the chunk of request i has the rows
                      query_starts[i] to query_starts[i + 1] - 1, at least one
        seq_lens      of request i, seq_lens[i] tokens are computed when this step is done: those
                      of earlier steps and those of its chunk
        known         of request i, known[i] tokens are known: its prompt and the outputs so far

    A request is sampled once if all its known tokens are computed with this step, from the row of
    its last token. From any other row the model predicts a token that is known already.

    Example: rows 0, 1-4, 5-7 are a decode of 6 known tokens, the first 4 tokens of a prompt of 9,
    and a whole prompt of 3: logits_rows([0, 1, 5, 8], [6, 4, 3], [6, 9, 3]) is [0, 7].

    Returns a list of ints, empty if nothing is sampled. No argument is changed. Raises ValueError
    if
        seq_lens and known are not equally long, or query_starts is not one number longer, or
        more tokens of a request are computed than are known.
    """
    raise ExerciseNotStarted("logits_rows")


# --- end of batching.logits-rows ---

# --- batching.build-batch: edit from here ---


def build_batch(chunks: Sequence[Chunk], block_size: int) -> Batch:
    """Pack the chunks of a step, one or more, into one flat batch in their order, without padding.

    What a chunk offers:
        chunk.start, chunk.num_tokens  it computes the positions start to start + num_tokens - 1
        chunk.request.token_ids        all known tokens of its request, a list of ints
        chunk.request.num_tokens       how many these are
        chunk.request.block_table      the ids of its blocks, a list of ints; may be longer than
                                       this step needs
        chunk.request.request_id       for messages

    Returns Batch(token_ids=..., ...), seven int64 tensors on the CPU:
        token_ids     [all tokens of the step]  the chunks' tokens, chunk after chunk
        positions     [all tokens of the step]  the place of each in its own request, from 0
        slot_mapping  [all tokens of the step]  where its key and value are written:
                      block id * block_size + offset
        query_starts  [requests + 1]  the first row of each chunk, and then the number of all rows
        seq_lens      [requests]  tokens of the request that are computed when the step is done
        block_tables  [requests, width]  the blocks of the first seq_lens positions, and then 0 up
                      to the width: the largest number of blocks that a request needs. It may be
                      wider, and a request's own further blocks may stand there instead of 0
        logits_rows   [sampled requests]  as in batching.logits-rows; may be empty

    Example: blocks of 4; a decode at position 5 in the blocks 3 and 8, and a chunk of the first
    2 of 7 tokens in block 1:
        positions [5, 0, 1], slot_mapping [33, 4, 5], query_starts [0, 1, 3], seq_lens [6, 2],
        block_tables [[3, 8], [1, 0]], logits_rows [0]

    The batch keeps its numbers when the request's lists change later, and when the next batch is
    built. No request is changed. Raises ValueError if
        a chunk has less than one token, or reaches beyond its request's tokens,
        a block table has too few blocks for the positions of its chunk.

    Import torch in here. You may call your own logits_rows and slot_mapping (`from paged_kv import
    slot_mapping`), or the reference's from mini_engine.compute.rows and mini_engine.compute.slots:
    take that of slots while your slot_mapping in practice/paged_kv.py is still a stub.
    """
    raise ExerciseNotStarted("build_batch")


# --- end of batching.build-batch ---

# --- batching.varlen-attention: edit from here ---


def varlen_attention(
    query: Tensor,
    k_blocks: Tensor,
    v_blocks: Tensor,
    query_starts: Tensor,
    seq_lens: Tensor,
    block_tables: Tensor,
    scale: float,
) -> Tensor:
    """Causal attention of a flat batch: of every request over its own keys and values only.

    Shapes
        query               [num_tokens, num_heads, head_dim], the chunks one behind the other
        k_blocks, v_blocks  [num_blocks, block_size, num_kv_heads, head_dim], the whole cache; the
                            keys and values of this step's tokens are in it already
        query_starts        [num_requests + 1], int64: request i has the rows query_starts[i] to
                            query_starts[i + 1] - 1; the last number is num_tokens
        seq_lens            [num_requests], int64: positions of request i that are in the cache
        block_tables        [num_requests, width], int64: position p of request i lies in block
                            block_tables[i, p // block_size], at offset p % block_size; entries
                            behind its last block are no blocks of the request (often 0, which is
                            the id of a real block)
        result              query's shape and dtype

    With n rows, request i has the last n of its seq_lens[i] positions: row j of its n stands at
    position seq_lens[i] - n + j and sees the request's positions up to its own. A row never sees
    another request. Scores are `scale` times the dot product. num_heads is a multiple of
    num_kv_heads: query head h reads KV head h // (num_heads // num_kv_heads).

    All other slots hold other numbers, finite but possibly large: they must not change the result.
    Requests may share blocks. No argument is changed. query_starts, seq_lens and block_tables are
    on the CPU. Raises ValueError if a row of block_tables is too short for its seq_lens, or if a
    request has more rows than positions.

    Import torch in here. A loop over the requests is welcome: it may call your own paged_attention
    (`from paged_kv import paged_attention`), or, while that is a stub, the reference's from
    mini_engine.compute.attention_single.
    """
    raise ExerciseNotStarted("varlen_attention")


# --- end of batching.varlen-attention ---
