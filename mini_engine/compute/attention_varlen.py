"""Owns attention of a flat batch in its plainest form: one request after the other.

The engine's own `PagedAttention` gives the same numbers in fewer and larger pieces of work: it
gathers decodes of similar length together, and on a GPU one kernel walks through all block tables.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mini_engine.compute.attention_single import paged_attention


def varlen_attention(
    query: Tensor,
    k_blocks: Tensor,
    v_blocks: Tensor,
    query_starts: Tensor,
    seq_lens: Tensor,
    block_tables: Tensor,
    scale: float,
) -> Tensor:
    """Causal attention of many requests of different lengths, packed without padding.

    query [num_tokens, num_heads, head_dim]; k_blocks and v_blocks [num_blocks, block_size,
    num_kv_heads, head_dim]; query_starts [num_requests + 1], seq_lens [num_requests] and
    block_tables [num_requests, width] as in interfaces.Batch. The rows of a request are the last of
    its seq_lens positions. Returns query's shape. Raises ValueError for a row of block_tables that
    is too short, and for more rows than positions.
    """
    starts = query_starts.tolist()
    out = torch.empty(query.shape, dtype=query.dtype, device=query.device)
    tables = block_tables.tolist()
    for request, seq_len in enumerate(seq_lens.tolist()):
        rows = slice(starts[request], starts[request + 1])
        out[rows] = paged_attention(
            query[rows], k_blocks, v_blocks, tables[request], seq_len, scale
        )
    return out
