"""Flat batches: slots, lengths, tables and rows to sample, and what is refused."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mini_engine.compute.adapters import batch_builder, row_chooser
from mini_engine.compute.batch import build_batch, slot_mapping
from mini_engine.compute.rows import logits_rows
from mini_engine.control.request import Request
from mini_engine.interfaces import Chunk


def request(name: str, num_tokens: int, block_table: list[int]) -> Request:
    made = Request(name, list(range(100, 100 + num_tokens)))
    made.block_table = block_table
    return made


def test_slots_follow_the_block_table() -> None:
    assert slot_mapping([7, 2, 5], 2, 5, 4) == [30, 31, 8, 9, 10]


@pytest.mark.parametrize("length", [3, 4, 5])
def test_slots_of_lengths_around_the_block_size(length: int) -> None:
    table = [9, 1][: -(-length // 4)]
    assert slot_mapping(table, 0, length, 4) == [36, 37, 38, 39, 4][:length]


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=8, unique=True),
    st.integers(1, 7),
    st.data(),
)
def test_slots_are_distinct_and_lie_in_the_table_s_blocks(
    table: list[int], block_size: int, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(table) * block_size))
    count = data.draw(st.integers(0, len(table) * block_size - start))
    slots = slot_mapping(table, start, count, block_size)
    assert len(set(slots)) == len(slots) == count
    for position, slot in enumerate(slots, start):
        assert divmod(slot, block_size) == (table[position // block_size], position % block_size)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1], 3, 2, 4), "positions 3 to 4"),
        (([], 0, 1, 4), "0 blocks"),
        (([1], -1, 1, 4), "start"),
        (([1], 0, -1, 4), "num_tokens"),
        (([1], 0, 1, 0), "block_size"),
    ],
)
def test_impossible_slots_are_refused(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        slot_mapping(*arguments)


def test_a_mixed_batch_is_packed_without_padding() -> None:
    decode = request("a", 6, [3, 8])
    middle = request("b", 9, [1])
    whole = request("c", 3, [5])
    batch = build_batch(
        [Chunk(decode, 5, 1, True), Chunk(middle, 0, 4, False), Chunk(whole, 0, 3, True)], 4
    )
    assert batch.token_ids.tolist() == [105, 100, 101, 102, 103, 100, 101, 102]
    assert batch.positions.tolist() == [5, 0, 1, 2, 3, 0, 1, 2]
    assert batch.slot_mapping.tolist() == [33, 4, 5, 6, 7, 20, 21, 22]
    assert batch.query_starts.tolist() == [0, 1, 5, 8]
    assert batch.seq_lens.tolist() == [6, 4, 3]
    assert batch.block_tables.tolist() == [[3, 8], [1, 0], [5, 0]]
    assert batch.logits_rows.tolist() == [0, 7]  # no token is sampled from the middle of a prompt
    assert all(tensor.dtype == torch.int64 for tensor in vars(batch).values())


def test_the_batch_keeps_nothing_of_a_table_that_changes_later() -> None:
    one = request("a", 4, [3])
    batch = build_batch([Chunk(one, 0, 4, True)], 4)
    one.block_table[0] = 9
    one.token_ids[0] = 9
    assert batch.block_tables.tolist() == [[3]]
    assert batch.token_ids[0] == 100


def test_blocks_beyond_the_chunk_are_left_out() -> None:
    batch = build_batch([Chunk(request("a", 9, [3, 4, 5]), 0, 4, False)], 4)
    assert batch.block_tables.tolist() == [[3]]


def test_a_chunk_without_sampled_rows_and_an_empty_step() -> None:
    batch = build_batch([Chunk(request("a", 9, [3]), 0, 2, False)], 4)
    assert batch.logits_rows.tolist() == []
    empty = build_batch([], 4)
    assert empty.block_tables.shape == (0, 0)
    assert empty.query_starts.tolist() == [0]


def test_a_chunk_beyond_its_tokens_or_its_table_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'a'.*it has 3 tokens"):
        build_batch([Chunk(request("a", 3, [1]), 0, 4, True)], 4)
    with pytest.raises(ValueError, match=r"'a'.*need 2 blocks of 4, its block table has 1"):
        build_batch([Chunk(request("a", 5, [1]), 0, 5, True)], 4)


def test_another_slot_mapping_and_another_choice_of_rows_can_be_put_in() -> None:
    chunks = [Chunk(request("a", 3, [1]), 0, 3, True), Chunk(request("b", 9, [2]), 0, 2, False)]
    usual = build_batch(chunks, 4)
    batch = batch_builder(lambda table, start, count, size: [table[0]] * count)(chunks, 4)
    assert batch.slot_mapping.tolist() == [1, 1, 1, 2, 2]
    assert batch.logits_rows.tolist() == usual.logits_rows.tolist() == [2]
    batch = row_chooser(lambda starts, seq_lens, known: [*starts, *seq_lens, *known])(chunks, 4)
    assert batch.logits_rows.tolist() == [0, 3, 5, 3, 2, 3, 9]
    assert batch.slot_mapping.tolist() == usual.slot_mapping.tolist()


def test_only_a_chunk_that_reaches_the_last_known_token_is_sampled_from() -> None:
    assert logits_rows([0, 1, 5, 8], [6, 4, 3], [6, 9, 3]) == [0, 7]
    assert logits_rows([0, 4], [4], [5]) == []
    assert logits_rows([0], [], []) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [3, 4], [3, 4]), "2 seq_lens"),
        (([0, 1, 2], [3, 4], [3]), "got 1 and 3"),
        (([0, 2], [3], [2]), "computes 3 of 2 tokens"),
    ],
)
def test_lists_that_do_not_fit_together_are_refused(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        logits_rows(*arguments)
