"""Owns attention: over contiguous keys and values, and over the paged cache for a flat batch.

Everything goes through PyTorch's scaled_dot_product_attention (SDPA), which streams over the keys
and never keeps a whole matrix of scores. Heads that share keys and values stand side by side in a
batch dimension whose keys are expanded with stride 0, so no key or value is ever repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from mini_engine.config import ModelConfig
from mini_engine.interfaces import Batch

# Padded keys per real key up to which requests are gathered together. Beyond it, another gather
# costs less than the padding (measured; see benchmarks).
PADDING_LIMIT = 1.5


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
    return _attend_chunk(query, key, value, scale, causal_mask(num_queries, num_keys, query))


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


def _attend_chunk(
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


@dataclass(frozen=True)
class DecodeGroup:
    """Requests with one token each, of similar lengths: one gather and one SDPA call for all."""

    rows: Tensor  # [n], their rows in the batch
    blocks: Tensor  # [n * width], their block tables filled up to the longest one's width
    num_keys: int  # tokens of the longest
    mask: Tensor | None  # [n, 1, 1, num_keys], 0 or -inf; None if all are equally long


@dataclass(frozen=True)
class PrefillChunk:
    """One request with several tokens in this step."""

    rows: slice
    blocks: Tensor  # [blocks that hold its tokens]
    num_keys: int
    mask: Tensor | None  # [n, num_keys], lower-right causal, as `causal_mask` gives it


@dataclass(frozen=True)
class Layout:
    """What all layers of a step share."""

    groups: list[DecodeGroup]
    chunks: list[PrefillChunk]
    all_in_order: bool  # one group is the whole batch, row by row


@dataclass
class Plan:
    """A step's batch, and its layout once the first layer has shown the cache's block size."""

    batch: Batch
    layout: Layout | None = None


class PagedAttention:
    """Attention of a flat batch, decodes and prefill chunks mixed; see interfaces.Attention.

    Decodes are sorted by length and gathered in groups within which padding stays below
    `padding_limit`; infinity puts all in one group of fixed width, as a GPU likes it.
    """

    def __init__(
        self,
        config: ModelConfig,
        device: torch.device | str = "cpu",
        padding_limit: float | None = None,
    ) -> None:
        self.scale = config.head_dim**-0.5
        if padding_limit is None:
            on_cpu = torch.device(device).type == "cpu"
            padding_limit = PADDING_LIMIT if on_cpu else float("inf")
        self.padding_limit = padding_limit

    def plan(self, batch: Batch) -> Plan:
        """Keep the CPU batch; the layout is made once, in the first layer."""
        return Plan(batch)

    def _layout(self, batch: Batch, query: Tensor, block_size: int) -> Layout:
        """Groups of decodes, ids of gathered blocks, and masks of query's dtype and device."""
        starts, seq_lens = batch.query_starts.tolist(), batch.seq_lens.tolist()
        decodes, chunks = [], []
        for request, num_keys in enumerate(seq_lens):
            if starts[request + 1] - starts[request] == 1:
                decodes.append(request)
                continue
            rows = slice(starts[request], starts[request + 1])
            blocks = batch.block_tables[request, : -(-num_keys // block_size)].to(query.device)
            mask = causal_mask(rows.stop - rows.start, num_keys, query)
            chunks.append(PrefillChunk(rows, blocks, num_keys, mask))
        members = group_by_length(decodes, seq_lens, block_size, self.padding_limit)
        groups = [_decode_group(batch, group, query, block_size) for group in members]
        return Layout(groups, chunks, all_in_order=len(groups) == 1 and not chunks)

    def __call__(self, query: Tensor, keys: Tensor, values: Tensor, plan: Plan) -> Tensor:
        """query [num_tokens, num_heads, head_dim]; keys, values as `KVCache.layer` gives them."""
        if plan.layout is None:
            plan.layout = self._layout(plan.batch, query, keys.shape[1])
        layout = plan.layout
        if layout.all_in_order:
            return self._decode(query, keys, values, layout.groups[0])
        out = torch.empty(query.shape, dtype=query.dtype, device=query.device)
        for group in layout.groups:
            rows = query.index_select(0, group.rows)
            out.index_copy_(0, group.rows, self._decode(rows, keys, values, group))
        for chunk in layout.chunks:
            key = keys.index_select(0, chunk.blocks).flatten(0, 1)[: chunk.num_keys]
            value = values.index_select(0, chunk.blocks).flatten(0, 1)[: chunk.num_keys]
            out[chunk.rows] = _attend_chunk(query[chunk.rows], key, value, self.scale, chunk.mask)
        return out

    def _decode(self, query: Tensor, keys: Tensor, values: Tensor, group: DecodeGroup) -> Tensor:
        """One query per request over whole gathered blocks: query [n, num_heads, head_dim]."""
        num_rows, num_heads, head_dim = query.shape
        kv_heads, num_keys = keys.shape[2], group.num_keys
        # Whole blocks are copied, not single slots: fewer and longer pieces of memory.
        shape = (num_rows, -1, kv_heads, head_dim)
        key = keys.index_select(0, group.blocks).view(shape)[:, :num_keys]
        value = values.index_select(0, group.blocks).view(shape)[:, :num_keys]
        out = F.scaled_dot_product_attention(
            # Query heads that share a KV head are its queries: [n, num_kv_heads, share, head_dim]
            query.reshape(num_rows, kv_heads, -1, head_dim),
            key.transpose(1, 2),  # [n, num_kv_heads, num_keys, head_dim]
            value.transpose(1, 2),
            attn_mask=group.mask,
            scale=self.scale,
        )
        return out.reshape(num_rows, num_heads, head_dim)


def _decode_group(batch: Batch, requests: list[int], query: Tensor, block_size: int) -> DecodeGroup:
    index = torch.tensor(requests)
    seq_lens = batch.seq_lens[index]
    num_keys = int(seq_lens.max())
    blocks = batch.block_tables[index, : -(-num_keys // block_size)].flatten()
    mask = None
    if int(seq_lens.min()) < num_keys:
        unseen = torch.arange(num_keys) >= seq_lens[:, None]  # [n, num_keys]
        mask = torch.zeros(unseen.shape, dtype=query.dtype).masked_fill(unseen, -torch.inf)
        mask = mask[:, None, None].to(query.device)
    rows = batch.query_starts[index].to(query.device)
    return DecodeGroup(rows, blocks.to(query.device), num_keys, mask)


def group_by_length(
    requests: Sequence[int], seq_lens: Sequence[int], block_size: int, padding_limit: float
) -> list[list[int]]:
    """Split requests into groups of similar length, each in batch order.

    From the longest on, a group grows while its gathered blocks (the longest's width for each
    member) stay within `padding_limit` times the blocks that its members really have.
    """
    widths = {request: -(-seq_lens[request] // block_size) for request in requests}
    groups: list[list[int]] = []
    width = real = 0
    for request in sorted(requests, key=lambda request: -widths[request]):
        real += widths[request]
        if groups and (len(groups[-1]) + 1) * width <= padding_limit * real:
            groups[-1].append(request)
        else:
            groups.append([request])
            width = real = widths[request]
    return [sorted(group) for group in groups]
