"""Owns attention of a flat batch over the paged cache: decodes and prefill chunks of many requests.

Attention of a single request, which this is made of and compared with, is in attention_single.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from mini_engine.compute.attention_cuda import VarlenLayout, VarlenPath, find_varlen_path
from mini_engine.compute.attention_single import (
    attend_chunk,
    attention_over_contiguous,
    causal_mask,
    paged_attention,
)
from mini_engine.config import ModelConfig
from mini_engine.interfaces import Batch

__all__ = [
    "DecodeGroup",
    "PagedAttention",
    "attend_group",
    "attention_over_contiguous",
    "group_by_length",
    "paged_attention",
]

# Gathered blocks per real block up to which requests are gathered together. Beyond it, another
# gather costs less than the padding: `python -m mini_engine.benchmarks.padding` shows how much.
PADDING_LIMIT = 1.1


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
    scratch: tuple[Tensor, Tensor]  # where K and V are gathered, again in each group and layer


@dataclass
class Plan:
    """A step's batch, and its layout once the first layer has shown the cache's block size."""

    batch: Batch
    layout: Layout | VarlenLayout | None = None


class PagedAttention:
    """Attention of a flat batch, decodes and prefill chunks mixed; see interfaces.Attention.

    Decodes are sorted by length and gathered in groups within which padding stays below
    `padding_limit`; infinity puts all in one group of fixed width, as a GPU likes it. On CUDA a
    kernel that reads through the block tables takes over if it passes a self-test in the first
    step; `no_fast_path` says why it did not.
    """

    def __init__(
        self,
        config: ModelConfig,
        device: torch.device | str = "cpu",
        padding_limit: float | None = None,
    ) -> None:
        self.config = config
        self.scale = config.head_dim**-0.5
        self.no_fast_path = "not tried yet"
        self._varlen: VarlenPath | None = None
        if padding_limit is None:
            on_cpu = torch.device(device).type == "cpu"
            padding_limit = PADDING_LIMIT if on_cpu else float("inf")
        self.padding_limit = padding_limit

    def plan(self, batch: Batch) -> Plan:
        """Keep the CPU batch; the layout is made once, in the first layer."""
        return Plan(batch)

    def _layout(self, batch: Batch, query: Tensor, keys: Tensor) -> Layout:
        """Groups of decodes, ids of gathered blocks, and masks of query's dtype and device."""
        block_size = keys.shape[1]
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
        most = max([len(x.blocks) for x in groups] + [len(x.blocks) for x in chunks])
        scratch = keys.new_empty((most, *keys.shape[1:])), keys.new_empty((most, *keys.shape[1:]))
        return Layout(groups, chunks, len(groups) == 1 and not chunks, scratch)

    def __call__(self, query: Tensor, keys: Tensor, values: Tensor, plan: Plan) -> Tensor:
        """query [num_tokens, num_heads, head_dim]; keys, values as `KVCache.layer` gives them."""
        if plan.layout is None:
            plan.layout = self._first_layout(plan.batch, query, keys)
        layout = plan.layout
        if isinstance(layout, VarlenLayout):
            assert self._varlen is not None
            return self._varlen(query, keys, values, layout)
        return self._attend(query, keys, values, layout)

    def _first_layout(self, batch: Batch, query: Tensor, keys: Tensor) -> Layout | VarlenLayout:
        """The layout for the fast path if there is one here, else the baseline's."""
        if self.no_fast_path == "not tried yet":

            def baseline(query: Tensor, keys: Tensor, values: Tensor, batch: Batch) -> Tensor:
                return self._attend(query, keys, values, self._layout(batch, query, keys))

            self._varlen, self.no_fast_path = find_varlen_path(
                self.config, keys.shape[1], query.dtype, query.device, baseline
            )
        if self._varlen is not None:
            return self._varlen.layout(batch, query.device)
        return self._layout(batch, query, keys)

    def _attend(self, query: Tensor, keys: Tensor, values: Tensor, layout: Layout) -> Tensor:
        if layout.all_in_order:
            return attend_group(query, keys, values, layout.groups[0], layout.scratch, self.scale)
        out = torch.empty(query.shape, dtype=query.dtype, device=query.device)
        for group in layout.groups:
            rows = query.index_select(0, group.rows)
            done = attend_group(rows, keys, values, group, layout.scratch, self.scale)
            out.index_copy_(0, group.rows, done)
        for chunk in layout.chunks:
            key, value = _gather(keys, values, chunk.blocks, layout.scratch)
            key, value = (x.flatten(0, 1)[: chunk.num_keys] for x in (key, value))
            out[chunk.rows] = attend_chunk(query[chunk.rows], key, value, self.scale, chunk.mask)
        return out


def attend_group(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    group: DecodeGroup,
    scratch: tuple[Tensor, Tensor],
    scale: float,
) -> Tensor:
    """One query per request over whole gathered blocks: query [n, num_heads, head_dim]."""
    num_rows, num_heads, head_dim = query.shape
    kv_heads, num_keys = keys.shape[2], group.num_keys
    shape = (num_rows, -1, kv_heads, head_dim)
    key, value = _gather(keys, values, group.blocks, scratch)
    key, value = (x.view(shape)[:, :num_keys] for x in (key, value))
    out = F.scaled_dot_product_attention(
        # Query heads that share a KV head are its queries: [n, num_kv_heads, share, head_dim]
        query.reshape(num_rows, kv_heads, -1, head_dim),
        key.transpose(1, 2),  # [n, num_kv_heads, num_keys, head_dim]
        value.transpose(1, 2),
        attn_mask=group.mask,
        scale=scale,
    )
    return out.reshape(num_rows, num_heads, head_dim)


def _gather(
    keys: Tensor, values: Tensor, blocks: Tensor, scratch: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """K and V of these blocks, in order, in memory that the next gather overwrites.

    Whole blocks are copied, not single slots: fewer and longer pieces of memory.
    """
    k_out, v_out = (buffer[: len(blocks)] for buffer in scratch)
    torch.index_select(keys, 0, blocks, out=k_out)
    torch.index_select(values, 0, blocks, out=v_out)
    return k_out, v_out


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
