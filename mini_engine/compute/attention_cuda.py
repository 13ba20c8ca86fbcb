"""Owns the fast path of attention on CUDA: PyTorch's paged FlashAttention kernel, if it works here.

`torch.nn.attention.varlen.varlen_attn` reads keys and values through the block tables, so nothing
is gathered. Which GPUs, PyTorch versions and block sizes it serves differs, so it is tried against
the baseline before it is trusted. Importing this needs neither CUDA nor that function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mini_engine.config import ModelConfig
from mini_engine.interfaces import Batch

TOLERANCE = 2e-2  # of attention outputs near 1 in bfloat16, whose last bit is 4e-3


@dataclass(frozen=True)
class VarlenLayout:
    """What the kernel needs to know of a batch, the same in all layers; int32 on the GPU."""

    query_starts: Tensor  # [num_requests + 1]
    key_starts: Tensor | None  # [num_requests + 1] where the kernel insists on it
    seq_lens: Tensor  # [num_requests]
    block_tables: Tensor  # [num_requests, most blocks of any request]
    most_queries: int
    most_keys: int


@dataclass(frozen=True)
class VarlenPath:
    """A way to call the kernel that passed the self-test."""

    kernel: Callable[..., Any]
    with_key_starts: bool
    scale: float

    def layout(self, batch: Batch, device: torch.device) -> VarlenLayout:
        """Once per step, from the CPU batch."""
        starts, lens = batch.query_starts, batch.seq_lens
        key_starts = None
        if self.with_key_starts:
            key_starts = torch.cat((lens.new_zeros(1), lens.cumsum(0))).to(device, torch.int32)
        return VarlenLayout(
            query_starts=starts.to(device, torch.int32),
            key_starts=key_starts,
            seq_lens=lens.to(device, torch.int32),
            block_tables=batch.block_tables.to(device, torch.int32),
            most_queries=int(starts.diff().max()),
            most_keys=int(lens.max()),
        )

    def __call__(self, query: Tensor, keys: Tensor, values: Tensor, layout: VarlenLayout) -> Tensor:
        """query [num_tokens, num_heads, head_dim]; keys, values as `KVCache.layer` gives them."""
        out: Tensor = self.kernel(
            query.contiguous(),
            keys,
            values,
            layout.query_starts,
            layout.key_starts,
            layout.most_queries,
            layout.most_keys,
            scale=self.scale,
            window_size=(-1, 0),  # causal, aligned at the last query and the last key
            enable_gqa=True,
            seqused_k=layout.seq_lens,
            block_table=layout.block_tables,
            num_splits=1,  # the same additions in the same order, whatever else is in the batch
        )
        return out


def find_varlen_path(
    config: ModelConfig,
    block_size: int,
    dtype: torch.dtype,
    device: torch.device,
    baseline: Callable[[Tensor, Tensor, Tensor, Batch], Tensor],
) -> tuple[VarlenPath | None, str]:
    """(path, "") if the kernel agrees with the baseline on this device, else (None, why not)."""
    if device.type != "cuda":
        return None, "varlen_attn runs on CUDA only"
    if dtype not in (torch.bfloat16, torch.float16):
        return None, f"varlen_attn computes in bfloat16 and float16, not in {dtype}"
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError as error:
        return None, f"PyTorch {torch.__version__} has no varlen_attn ({error})"
    reasons = []
    for with_key_starts in (False, True):  # FlashAttention 3 forbids them, 2 demands them
        path = VarlenPath(varlen_attn, with_key_starts, config.head_dim**-0.5)
        problem = self_test(path, config, block_size, dtype, device, baseline)
        if problem is None:
            return path, ""
        reasons.append(problem)
    return None, "; ".join(reasons)


def self_test(
    path: VarlenPath,
    config: ModelConfig,
    block_size: int,
    dtype: torch.dtype,
    device: torch.device,
    baseline: Callable[[Tensor, Tensor, Tensor, Batch], Tensor],
) -> str | None:
    """What goes wrong on a small mixed batch, or None.

    A decode, a later chunk and a whole prompt, over shuffled blocks that are not full.
    """
    generator = torch.Generator().manual_seed(0)
    lens, queries = [2 * block_size + 1, 3 * block_size - 1, 5], [1, 4, 5]
    table = torch.tensor([[5, 2, 7], [0, 6, 3], [4, 0, 0]])
    shape = (8, block_size, config.num_kv_heads, config.head_dim)
    keys = torch.randn(shape, generator=generator).to(device, dtype)
    values = torch.randn(shape, generator=generator).to(device, dtype)
    query = torch.randn((10, config.num_heads, config.head_dim), generator=generator)
    query = query.to(device, dtype)
    nothing = torch.empty(0, dtype=torch.int64)
    batch = Batch(
        token_ids=nothing,
        positions=nothing,
        slot_mapping=nothing,
        query_starts=torch.tensor([0, *torch.tensor(queries).cumsum(0).tolist()]),
        seq_lens=torch.tensor(lens),
        block_tables=table,
        logits_rows=nothing,
    )
    try:
        out = path(query, keys, values, path.layout(batch, device))
        difference = float((out.float() - baseline(query, keys, values, batch).float()).abs().max())
    except (RuntimeError, TypeError, ValueError) as error:  # unsupported, or an older signature
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    if not difference < TOLERANCE:  # also true for NaN
        return f"varlen_attn differs from the baseline by {difference:.3g}"
    return None
