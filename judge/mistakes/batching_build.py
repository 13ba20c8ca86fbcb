"""Owns the known mistakes of `batching.build-batch`: each is wrong in one way."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from judge.mistakes import batching as rows_of
from mini_engine.compute.batch import build_batch
from mini_engine.compute.rows import logits_rows
from mini_engine.control.request import Request
from mini_engine.interfaces import Batch, Chunk

Chunks = Sequence[Chunk]
Builder = Callable[[Chunks, int], Batch]


def ints(numbers: Iterable[int]) -> Tensor:
    return torch.tensor(list(numbers), dtype=torch.int64)


def with_field(name: str, make: Callable[[Chunks, int, Batch], Iterable[int]]) -> Builder:
    """The right batch with one tensor of one dimension made in another way."""

    def build(chunks: Chunks, block_size: int) -> Batch:
        batch = build_batch(chunks, block_size)
        return dataclasses.replace(batch, **{name: ints(make(chunks, block_size, batch))})

    return build


def with_tables(make: Callable[[Chunk, list[int], int, int], list[int]]) -> Builder:
    """The right batch with each row of block_tables made of (chunk, blocks, width, block_size)."""

    def build(chunks: Chunks, block_size: int) -> Batch:
        batch = build_batch(chunks, block_size)
        width, rows = batch.block_tables.shape[1], []
        for chunk, end in zip(chunks, batch.seq_lens.tolist(), strict=True):
            blocks = chunk.request.block_table[: -(-end // block_size)]
            rows.append(make(chunk, blocks, width, block_size))
        return dataclasses.replace(batch, block_tables=torch.tensor(rows, dtype=torch.int64))

    return build


def filled(blocks: list[int], width: int, number: int = 0) -> list[int]:
    return blocks + [number] * (width - len(blocks))


def end_of(chunk: Chunk) -> int:
    return chunk.start + chunk.num_tokens


positions_of_chunk = with_field(
    "positions", lambda chunks, size, batch: [i for c in chunks for i in range(c.num_tokens)]
)
positions_of_batch = with_field("positions", lambda _, size, batch: range(len(batch.positions)))
slots_are_positions = with_field("slot_mapping", lambda _, size, batch: batch.positions.tolist())
slots_of_chunk = with_field(
    "slot_mapping",
    lambda chunks, size, batch: [
        c.request.block_table[i // size] * size + i % size
        for c in chunks
        for i in range(c.num_tokens)
    ],
)
slots_contiguous = with_field(
    "slot_mapping",
    lambda chunks, size, batch: [
        c.request.block_table[0] * size + p for c in chunks for p in range(c.start, end_of(c))
    ],
)
starts_without_end = with_field(
    "query_starts", lambda _, size, batch: batch.query_starts[:-1].tolist()
)
starts_are_lengths = with_field(
    "query_starts", lambda chunks, size, batch: [0, *(c.num_tokens for c in chunks)]
)
lens_of_chunk = with_field("seq_lens", lambda chunks, *_: [c.num_tokens for c in chunks])
lens_before = with_field("seq_lens", lambda chunks, *_: [c.start for c in chunks])
lens_known = with_field("seq_lens", lambda chunks, *_: [c.request.num_tokens for c in chunks])


def with_rows(rows: Callable[[list[int], list[int], list[int]], list[int]]) -> Builder:
    """The right batch with a mistake in logits_rows alone."""

    def made(chunks: Chunks, block_size: int, batch: Batch) -> list[int]:
        known = [chunk.request.num_tokens for chunk in chunks]
        return rows(batch.query_starts.tolist(), batch.seq_lens.tolist(), known)

    return with_field("logits_rows", made)


rows_of_every_chunk = with_rows(rows_of.every_chunk)
rows_too_high = with_rows(rows_of.one_too_high)
rows_are_positions = with_rows(rows_of.positions)
rows_of_single_tokens = with_rows(rows_of.single_tokens_always)
rows_are_requests = with_rows(rows_of.requests)
rows_by_length = with_rows(rows_of.start_plus_length)
minus_one_for_none = with_rows(rows_of.minus_one)


def misread(count: Callable[[Chunk], int], *, tables: bool = False) -> Builder:
    """seq_lens wrong, and the rows to sample from by it; with `tables`, the blocks too."""

    def build(chunks: Chunks, block_size: int) -> Batch:
        batch = build_batch(chunks, block_size)
        lens = [count(chunk) for chunk in chunks]
        known = [chunk.request.num_tokens for chunk in chunks]
        rows = logits_rows(batch.query_starts.tolist(), lens, known)
        found = dataclasses.replace(batch, seq_lens=ints(lens), logits_rows=ints(rows))
        if not tables:
            return found
        return dataclasses.replace(found, block_tables=rectangle(chunks, lens, block_size))

    return build


def rectangle(chunks: Chunks, lens: Sequence[int], size: int) -> Tensor:
    """The blocks of so many positions, filled up to the widest."""
    tables = [
        chunk.request.block_table[: -(-length // size)]
        for chunk, length in zip(chunks, lens, strict=True)
    ]
    width = max(map(len, tables))
    return torch.tensor([filled(table, width) for table in tables], dtype=torch.int64)


lens_and_rows_of_chunk = misread(lambda chunk: chunk.num_tokens)
all_by_chunk = misread(lambda chunk: chunk.num_tokens, tables=True)
lens_and_rows_before = misread(lambda chunk: chunk.start)
all_by_start = misread(lambda chunk: chunk.start, tables=True)
lens_and_rows_known = misread(lambda chunk: chunk.request.num_tokens)
tokens_from_zero = with_field(
    "token_ids",
    lambda chunks, size, batch: [t for c in chunks for t in c.request.token_ids[: c.num_tokens]],
)
filled_left = with_tables(
    lambda chunk, blocks, width, size: [0] * (width - len(blocks)) + list(blocks)
)
filled_minus_one = with_tables(lambda chunk, blocks, width, size: filled(blocks, width, -1))
not_filled = with_tables(lambda chunk, blocks, width, size: blocks)
blocks_of_chunk = with_tables(
    lambda chunk, blocks, width, size: filled(blocks[chunk.start // size :], width)
)
full_blocks = with_tables(
    lambda chunk, blocks, width, size: filled(blocks[: end_of(chunk) // size], width)
)


def full_blocks_narrow(chunks: Chunks, block_size: int) -> Batch:
    """The width is that of the longest of the tables, which are too short."""
    batch = build_batch(chunks, block_size)
    ends = [end_of(chunk) // block_size * block_size for chunk in chunks]
    return dataclasses.replace(batch, block_tables=rectangle(chunks, ends, block_size))


def prompt_tokens(chunks: Chunks, block_size: int) -> Batch:
    """Chunks that reach into the outputs are too long then, and refused."""
    found = []
    for chunk in chunks:
        request = Request(chunk.request.request_id, chunk.request.prompt_token_ids)
        request.block_table = chunk.request.block_table
        found.append(dataclasses.replace(chunk, request=request))
    return build_batch(found, block_size)


def float_if_empty(chunks: Chunks, block_size: int) -> Batch:
    batch = build_batch(chunks, block_size)
    if len(batch.logits_rows):
        return batch
    return dataclasses.replace(batch, logits_rows=torch.tensor([]))


def int32(chunks: Chunks, block_size: int) -> Batch:
    batch = build_batch(chunks, block_size)
    return Batch(**{name: tensor.to(torch.int32) for name, tensor in vars(batch).items()})


def decodes_first(chunks: Chunks, block_size: int) -> Batch:
    return build_batch(sorted(chunks, key=lambda chunk: chunk.num_tokens > 1), block_size)


def index_error(chunks: Chunks, block_size: int) -> Batch:
    for chunk in chunks:
        end = end_of(chunk)
        if 0 < chunk.num_tokens <= end <= chunk.request.num_tokens:
            _ = [chunk.request.block_table[p // block_size] for p in range(chunk.start, end)]
    return build_batch(chunks, block_size)


def takes_unknown(chunks: Chunks, block_size: int) -> Batch:
    """Packs what there is of the tokens; everything else counts the chunk."""
    right = [c for c in chunks if end_of(c) <= c.request.num_tokens]
    if len(right) == len(chunks):
        return build_batch(chunks, block_size)
    longer = []
    for chunk in chunks:
        known = chunk.request.token_ids
        request = Request(chunk.request.request_id, known + [0] * (end_of(chunk) - len(known)))
        request.block_table = chunk.request.block_table
        longer.append(dataclasses.replace(chunk, request=request))
    batch = build_batch(longer, block_size)
    tokens = [t for c in chunks for t in c.request.token_ids[c.start : end_of(c)]]
    starts = [0]
    for chunk in chunks:
        starts.append(starts[-1] + len(chunk.request.token_ids[chunk.start : end_of(chunk)]))
    return dataclasses.replace(
        batch, token_ids=ints(tokens), query_starts=ints(starts), logits_rows=ints([])
    )


def takes_empty(chunks: Chunks, block_size: int) -> Batch:
    """A chunk of no tokens gets an entry in all that counts requests."""
    if all(chunk.num_tokens >= 1 for chunk in chunks):
        return build_batch(chunks, block_size)
    starts, tables = [0], []
    rows: list[int] = []
    tokens: list[int] = []
    positions: list[int] = []
    slots: list[int] = []
    for chunk in chunks:
        request, span = chunk.request, range(chunk.start, end_of(chunk))
        tokens += request.token_ids[chunk.start : end_of(chunk)]
        positions += span
        slots += [request.block_table[p // block_size] * block_size + p % block_size for p in span]
        starts.append(len(tokens))
        if end_of(chunk) == request.num_tokens:
            rows.append(len(tokens) - 1)
        tables.append(request.block_table[: -(-end_of(chunk) // block_size)])
    width = max(map(len, tables))
    return Batch(
        ints(tokens), ints(positions), ints(slots), ints(starts), ints(map(end_of, chunks)),
        torch.tensor([filled(table, width) for table in tables], dtype=torch.int64), ints(rows),
    )  # fmt: skip
