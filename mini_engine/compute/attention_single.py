"""Owns attention of one request: over contiguous keys and values, and over scattered blocks.

Everything goes through PyTorch's scaled_dot_product_attention (SDPA), which streams over the keys
and never keeps a whole matrix of scores. Heads that share keys and values stand side by side in a
batch dimension whose keys are expanded with stride 0, so no key or value is ever repeated.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor


def attention_over_contiguous(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """Causal attention of one request whose keys and values lie in order.

    query [n, num_heads, head_dim] are the *last* n of the L positions of key and value
    [L, num_kv_heads, head_dim]; query i sees the positions up to L - n + i. Returns query's shape.
    Raises ValueError if n > L.
    """
    num_queries, num_keys = query.shape[0], key.shape[0]
    if num_queries > num_keys:
        raise ValueError(
            f"{num_queries} queries for {num_keys} keys; the queries come last in them"
        )
    return attend_chunk(query, key, value, scale, causal_mask(num_queries, num_keys, query))


def paged_attention(
    query: Tensor,
    k_blocks: Tensor,
    v_blocks: Tensor,
    block_table: Sequence[int],
    seq_len: int,
    scale: float,
) -> Tensor:
    """Causal attention of one request whose keys and values lie scattered over blocks.

    query [n, num_heads, head_dim] are the last n of `seq_len` positions; k_blocks and v_blocks are
    [num_blocks, block_size, num_kv_heads, head_dim]; position p lies in block
    block_table[p // block_size] at offset p % block_size. Slots beyond `seq_len` hold anything and
    are never read. Returns query's shape. Raises ValueError if the table is too short.
    """
    block_size = k_blocks.shape[1]
    num_blocks = -(-seq_len // block_size)
    if num_blocks > len(block_table):
        raise ValueError(
            f"{seq_len} tokens need {num_blocks} blocks of {block_size}, "
            f"the block table has {len(block_table)}"
        )
    blocks = torch.tensor(block_table[:num_blocks], device=k_blocks.device)
    key = k_blocks[blocks].flatten(0, 1)[:seq_len]  # [seq_len, num_kv_heads, head_dim]
    value = v_blocks[blocks].flatten(0, 1)[:seq_len]
    return attention_over_contiguous(query, key, value, scale)


def causal_mask(num_queries: int, num_keys: int, like: Tensor) -> Tensor | None:
    """What the last `num_queries` of `num_keys` positions may see: 0 or -inf, [queries, keys].

    In the dtype and on the device of `like`. None where SDPA needs no mask: a single query sees all
    keys, and as many queries as keys are what its `is_causal` means.
    """
    if num_queries in (1, num_keys):
        return None
    mask = torch.full((num_queries, num_keys), -torch.inf, dtype=like.dtype, device=like.device)
    # The last query sees the last key: the triangle starts at the lower right corner. SDPA's own
    # `is_causal` starts at the upper left, which is wrong as soon as some keys come from a cache.
    return mask.triu(num_keys - num_queries + 1)


def attend_chunk(
    query: Tensor, key: Tensor, value: Tensor, scale: float, mask: Tensor | None
) -> Tensor:
    """SDPA for one request; `mask` as `causal_mask` gives it."""
    num_queries, num_heads, head_dim = query.shape
    num_keys, kv_heads, _ = key.shape
    shape = (kv_heads, num_heads // kv_heads, num_keys, head_dim)
    out = F.scaled_dot_product_attention(
        # [num_kv_heads, heads that share one KV head, num_queries or num_keys, head_dim]
        query.view(num_queries, kv_heads, -1, head_dim).permute(1, 2, 0, 3),
        key.transpose(0, 1).unsqueeze(1).expand(shape),
        value.transpose(0, 1).unsqueeze(1).expand(shape),
        attn_mask=mask,
        is_causal=mask is None and num_queries > 1,
        scale=scale,
    )
    return out.permute(2, 0, 1, 3).reshape(num_queries, num_heads, head_dim)
