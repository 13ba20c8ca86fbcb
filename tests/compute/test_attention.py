"""Attention against its definition, and paged attention against contiguous attention."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mini_engine.compute.adapters import (
    ContiguousAttention,
    SingleRequestAttention,
    VarlenAttention,
)
from mini_engine.compute.attention import (
    PagedAttention,
    attention_over_contiguous,
    group_by_length,
    paged_attention,
)
from mini_engine.compute.attention_varlen import varlen_attention
from mini_engine.compute.random_model import TINY_LLAMA
from mini_engine.interfaces import Batch

SCALE = 0.3


def by_definition(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """Softmax attention written out, query by query and head by head, in float64."""
    num_queries, num_heads, _ = query.shape
    num_keys, kv_heads, _ = key.shape
    out = torch.empty(query.shape, dtype=torch.float64)
    for i in range(num_queries):
        seen = num_keys - num_queries + i + 1
        for head in range(num_heads):
            kv_head = head // (num_heads // kv_heads)
            scores = key[:seen, kv_head].double() @ query[i, head].double() * scale
            out[i, head] = torch.softmax(scores, 0) @ value[:seen, kv_head].double()
    return out


def random_qkv(num_queries: int, num_keys: int, heads: int, kv_heads: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(num_queries * 1000 + num_keys)
    shapes = [(num_queries, heads, 8), (num_keys, kv_heads, 8), (num_keys, kv_heads, 8)]
    return [torch.randn(shape, generator=generator) for shape in shapes]


@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 4), (4, 2), (6, 1), (9, 3)])
@pytest.mark.parametrize(
    ("num_queries", "num_keys"), [(1, 1), (1, 9), (5, 5), (3, 9), (8, 9), (2, 600), (600, 600)]
)
def test_contiguous_attention_is_the_definition(
    num_queries: int, num_keys: int, heads: int, kv_heads: int
) -> None:
    query, key, value = random_qkv(num_queries, num_keys, heads, kv_heads)
    out = attention_over_contiguous(query, key, value, SCALE)
    assert out.shape == query.shape
    assert (out - by_definition(query, key, value, SCALE)).abs().max() < 1e-5


def test_more_queries_than_keys_are_refused() -> None:
    query, key, value = random_qkv(3, 2, 2, 2)
    with pytest.raises(ValueError, match="3 queries for 2 keys"):
        attention_over_contiguous(query, key, value, SCALE)


class PagedCase:
    """Requests (queries, keys) scattered over shuffled blocks whose other slots hold poison."""

    def __init__(self, shapes: list[tuple[int, int]], block_size: int, poison: float = 1e4) -> None:
        heads, kv_heads, head_dim = 4, 2, 16
        generator = torch.Generator().manual_seed(len(shapes) * 77 + block_size)
        widths = [-(-keys // block_size) for _, keys in shapes]
        order = torch.randperm(sum(widths) + 3, generator=generator).tolist()
        self.k_blocks = torch.full((len(order), block_size, kv_heads, head_dim), poison)
        self.v_blocks = torch.full_like(self.k_blocks, poison)
        self.parts, queries, tables, starts = [], [], [], [0]
        for (num_queries, num_keys), width in zip(shapes, widths, strict=True):
            table = [order.pop() for _ in range(width)]
            query = torch.randn(num_queries, heads, head_dim, generator=generator)
            key, value = torch.randn(2, num_keys, kv_heads, head_dim, generator=generator)
            for position in range(num_keys):
                block, offset = table[position // block_size], position % block_size
                self.k_blocks[block, offset] = key[position]
                self.v_blocks[block, offset] = value[position]
            self.parts.append((query, key, value, table))
            queries.append(query)
            tables.append(table + [0] * (max(widths) - width))
            starts.append(starts[-1] + num_queries)
        self.query = torch.cat(queries)
        unused = torch.empty(0, dtype=torch.int64)
        self.batch = Batch(
            token_ids=unused,
            positions=unused,
            slot_mapping=unused,
            query_starts=torch.tensor(starts),
            seq_lens=torch.tensor([keys for _, keys in shapes]),
            block_tables=torch.tensor(tables),
            logits_rows=unused,
        )

    def expected(self) -> Tensor:
        scale = TINY_LLAMA.head_dim**-0.5
        return torch.cat([by_definition(q, k, v, scale) for q, k, v, _ in self.parts])

    def run(self, attention: object) -> Tensor:
        plan = attention.plan(self.batch)
        return attention(self.query, self.k_blocks, self.v_blocks, plan)


WAYS = {
    "groups": PagedAttention(TINY_LLAMA),
    "one gather": PagedAttention(TINY_LLAMA, padding_limit=math.inf),
    "one by one": PagedAttention(TINY_LLAMA, padding_limit=0.0),
    "contiguous adapter": ContiguousAttention(attention_over_contiguous),
    "paged adapter": SingleRequestAttention(paged_attention),
    "varlen adapter": VarlenAttention(varlen_attention),
}
BATCHES = {
    "one decode": [(1, 9)],
    "around the block size": [(1, 3), (1, 4), (1, 5)],
    "equal lengths": [(1, 8), (1, 8), (1, 8)],
    "ragged": [(1, 600), (1, 2), (1, 30), (1, 1), (1, 599)],
    "a whole prompt": [(7, 7)],
    "a later chunk": [(3, 11)],
    "mixed": [(1, 9), (4, 4), (1, 30), (2, 13), (5, 21), (1, 1)],
}


@pytest.mark.parametrize("attention", WAYS.values(), ids=list(WAYS))
@pytest.mark.parametrize("shapes", BATCHES.values(), ids=list(BATCHES))
@pytest.mark.parametrize("block_size", [1, 4, 16])
def test_paged_attention_is_the_definition(
    attention: object, shapes: list[tuple[int, int]], block_size: int
) -> None:
    case = PagedCase(shapes, block_size)
    assert (case.run(attention) - case.expected()).abs().max() < 1e-5


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 5), st.integers(0, 40)).map(lambda t: (t[0], t[0] + t[1])),
        min_size=1,
        max_size=7,
    ),
    st.integers(1, 9),
)
def test_all_ways_agree_on_random_batches(shapes: list[tuple[int, int]], block_size: int) -> None:
    case = PagedCase(shapes, block_size)
    expected = case.expected()
    for attention in WAYS.values():
        assert (case.run(attention) - expected).abs().max() < 1e-5


def test_case_38_poison_in_unwritten_slots_changes_no_bit() -> None:
    """Of the engine's own attention, which multiplies padded values by zero."""
    up, down = (PagedCase(BATCHES["mixed"], 4, poison) for poison in (1e4, -1e4))
    for attention in WAYS.values():
        assert torch.equal(up.run(attention), down.run(attention))


def test_a_plan_serves_every_layer() -> None:
    case = PagedCase(BATCHES["mixed"], 4)
    attention = WAYS["groups"]
    plan = attention.plan(case.batch)
    first = attention(case.query, case.k_blocks, case.v_blocks, plan)
    second = attention(case.query, case.k_blocks * 2, case.v_blocks, plan)
    again = attention(case.query, case.k_blocks, case.v_blocks, plan)
    assert torch.equal(first, again)
    assert not torch.allclose(first, second)


def test_a_short_block_table_is_refused() -> None:
    case = PagedCase([(1, 9)], 4)
    query, _, _, table = case.parts[0]
    with pytest.raises(ValueError, match="9 tokens need 3 blocks of 4, the block table has 2"):
        paged_attention(query, case.k_blocks, case.v_blocks, table[:2], 9, SCALE)


@pytest.mark.parametrize(
    ("result", "error"),
    [(None, TypeError), ([1], TypeError), (torch.zeros(1, 1, 1), ValueError)],
)
def test_a_function_s_wrong_result_is_named(result: object, error: type[Exception]) -> None:
    case = PagedCase([(2, 9)], 4)
    with pytest.raises(error, match="attention must return"):
        case.run(ContiguousAttention(lambda *_: result))
    with pytest.raises(error, match="attention must return"):
        case.run(SingleRequestAttention(lambda *_: result))
    with pytest.raises(error, match="attention must return"):
        case.run(VarlenAttention(lambda *_: result))


@given(st.lists(st.integers(1, 500), min_size=1, max_size=30), st.floats(1.0, 3.0))
def test_groups_hold_every_request_once_and_keep_the_padding_limit(
    seq_lens: list[int], limit: float
) -> None:
    groups = group_by_length(range(len(seq_lens)), seq_lens, 16, limit)
    assert sorted(r for group in groups for r in group) == list(range(len(seq_lens)))
    for group in groups:
        widths = [-(-seq_lens[r] // 16) for r in group]
        assert len(group) * max(widths) <= limit * sum(widths)


def test_even_lengths_are_one_group_and_ragged_ones_are_not() -> None:
    assert group_by_length([0, 1, 2], [100, 110, 90], 16, 1.5) == [[0, 1, 2]]
    assert group_by_length([0, 1, 2], [1000, 10, 900], 16, 1.5) == [[0, 2], [1]]
