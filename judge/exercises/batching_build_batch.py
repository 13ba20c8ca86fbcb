"""Owns the checks, hints and known mistakes of `batching.build-batch`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from judge.api import Case, Check, Details, Mistake
from judge.batch_compare import as_read, exact_tables, same_batch
from judge.tensor_checks import smollm2_check, tiny_check

BUILD = "judge.batch_calls:build"
BEFORE = "seq_lens counts the tokens before the chunk only"
KNOWN = "seq_lens counts all known tokens, also those not computed yet"
NOT_FULL = "block_tables lacks the last block where it is not full"

Chunk = dict[str, Any]


def chunk(
    rng: random.Random, name: str, start: int, count: int, known: int, size: int,
    *, outputs: int = 0, spare: int = 0, table: Sequence[int] | None = None,
) -> Chunk:  # fmt: skip
    """A chunk with random tokens and blocks; `spare` blocks follow the needed ones."""
    if table is None:
        table = rng.sample(range(1, 90), -(-(start + count) // size) + spare)
    tokens = [rng.randrange(1, 40_000) for _ in range(known)]
    return {"id": name, "tokens": tokens, "outputs": outputs, "table": list(table),
            "start": start, "num_tokens": count}  # fmt: skip


def batch(size: int, *chunks: Chunk) -> Case:
    return Case(describe(size, chunks), {"block_size": size, "steps": [list(chunks)]})


def describe(size: int, chunks: Sequence[Chunk]) -> str:
    parts = []
    for one in chunks[:4]:
        end = one["start"] + one["num_tokens"]
        what = f"positions {one['start']} to {end - 1}" if end - one["start"] != 1 else (
            f"position {one['start']}")  # fmt: skip
        parts.append(f"{one['id']}: {what} of {len(one['tokens'])} tokens, blocks {one['table']}")
    more = f"; {len(chunks) - 4} more" if len(chunks) > 4 else ""
    return f"blocks of {size}; {'; '.join(parts)}{more}"


def by_hand(rng: random.Random) -> Sequence[Case]:
    return [
        batch(
            4, chunk(rng, "a", 5, 1, 6, 4, outputs=2, table=[3, 8]),
            chunk(rng, "b", 0, 2, 7, 4, table=[1]),
        ),
        batch(4, chunk(rng, "a", 0, 3, 3, 4, table=[5])),
        batch(
            2, chunk(rng, "a", 0, 3, 3, 2, table=[6, 2]),
            chunk(rng, "b", 4, 1, 5, 2, outputs=1, table=[9, 4, 7]),
        ),
    ]  # fmt: skip


def decode(rng: random.Random, name: str, size: int, longest: int = 40) -> Chunk:
    length = rng.randint(2, longest)
    outputs = rng.randint(1, length - 1)
    return chunk(rng, name, length - 1, 1, length, size, outputs=outputs)


def names(count: int) -> list[str]:
    return [f"request-{number}" for number in range(count)]


def decodes(rng: random.Random) -> Sequence[Case]:
    """One token each, of requests around the end of a block and much longer."""
    around = [chunk(rng, f"request-{n}", length - 1, 1, length, 4, outputs=1)
              for n, length in enumerate((3, 4, 5, 8, 9))]  # fmt: skip
    some = [decode(rng, name, 16, 90) for name in names(6)]
    return [batch(4, *around), batch(16, *some), batch(4, decode(rng, "request-0", 4))]


def prompts(rng: random.Random) -> Sequence[Case]:
    """Whole prompts of B - 1, B, B + 1 tokens, and around two blocks."""
    cases = []
    for size in (4, 16):
        lengths = (size - 1, size, size + 1, 2 * size, 2 * size + 1)
        whole = [chunk(rng, f"request-{n}", 0, k, k, size) for n, k in enumerate(lengths)]
        cases += [batch(size, *whole), batch(size, whole[1], whole[0])]
    return cases


def middle(rng: random.Random) -> Sequence[Case]:
    """Chunks that start and end inside blocks; the last one of a prompt, and others."""
    cases = []
    for size in (4, 8):
        chunks = [
            chunk(rng, "request-0", size + 1, size, 3 * size, size),
            chunk(rng, "request-1", size, 2, size + 2, size),
            chunk(rng, "request-2", size - 1, 2, 4 * size, size),
            chunk(rng, "request-3", 2 * size + 1, 1, 3 * size, size),  # one token, but no decode
        ]
        cases += [batch(size, *chunks), batch(size, chunks[0], decode(rng, "request-9", size))]
    return cases


def again(rng: random.Random) -> Sequence[Case]:
    """After a preemption, prompt and outputs are computed again."""
    whole = chunk(rng, "request-0", 0, 11, 11, 4, outputs=4)
    part = chunk(rng, "request-1", 6, 3, 12, 4, outputs=5)
    return [batch(4, whole), batch(4, decode(rng, "request-2", 4), part, whole)]


def nothing_sampled(rng: random.Random) -> Sequence[Case]:
    return [
        batch(4, chunk(rng, "request-0", 0, 6, 30, 4)),
        batch(4, chunk(rng, "request-0", 3, 6, 10, 4), chunk(rng, "request-1", 8, 1, 10, 4)),
    ]


def spare_blocks(rng: random.Random) -> Sequence[Case]:
    """Tables that hold blocks for later tokens, too."""
    return [
        batch(
            4, chunk(rng, "request-0", 0, 4, 9, 4, spare=2),
            chunk(rng, "request-1", 5, 1, 6, 4, outputs=1),
        ),
        batch(
            2, chunk(rng, "request-0", 2, 1, 3, 2, outputs=1, spare=3),
            chunk(rng, "request-1", 0, 9, 9, 2),
        ),
    ]  # fmt: skip


def anything(rng: random.Random, name: str, size: int) -> Chunk:
    if rng.random() < 0.4:
        return decode(rng, name, size)
    start, count = rng.choice([0, rng.randint(1, 40)]), rng.randint(1, 20)
    known = start + count + rng.choice([0, 0, 1, rng.randint(2, 40)])
    outputs = rng.choice([0, rng.randrange(known)])
    return chunk(rng, name, start, count, known, size, outputs=outputs, spare=rng.choice([0, 0, 2]))


def random_cases(rng: random.Random) -> Sequence[Case]:
    cases = []
    for _ in range(12):
        size = rng.choice([1, 2, 3, 4, 16])
        cases.append(batch(size, *(anything(rng, name, size) for name in names(rng.randint(1, 8)))))
    return cases


def kept(rng: random.Random) -> Sequence[Case]:
    """Two steps of the same requests; the first batch is read after the second was built."""
    cases = []
    for _ in range(3):
        first = [chunk(rng, name, 0, k, k, 4, spare=1)
                 for name, k in zip(names(3), rng.sample(range(2, 9), 3), strict=True)]  # fmt: skip
        second = []
        for one in first:
            known = len(one["tokens"]) + 1
            tokens = [*one["tokens"], rng.randrange(1, 40_000)]
            second.append({**one, "tokens": tokens, "outputs": 1, "start": known - 1,
                           "num_tokens": 1})  # fmt: skip
        payload = {"block_size": 4, "steps": [first, second], "spoil": True}
        label = "two steps, both read at the end, the requests' lists overwritten meanwhile"
        cases.append(Case(f"{label}; the first: {describe(4, first)}", payload))
    return cases


def refused(rng: random.Random) -> Sequence[Case]:
    right = chunk(rng, "right", 0, 3, 3, 4)
    wrong = [
        chunk(rng, "wrong", 0, 4, 3, 4), chunk(rng, "wrong", 5, 2, 6, 4, outputs=1),
        chunk(rng, "wrong", 3, 0, 5, 4), chunk(rng, "wrong", 4, -1, 6, 4),
        chunk(rng, "wrong", 0, 5, 5, 4, table=[7]), chunk(rng, "wrong", 8, 1, 9, 4, table=[7, 2]),
        chunk(rng, "wrong", 0, 1, 1, 4, table=[]),
    ]  # fmt: skip
    return [*(batch(4, one) for one in wrong), batch(4, right, wrong[-2])]


def _check(name: str, title: str, cases: Any) -> Check:
    return Check(name, title, BUILD, cases, same_batch, normalize=as_read)


NARROW = Check(
    "narrow", "block_tables is no wider than needed, with 0 behind each request's blocks", BUILD,
    spare_blocks, exact_tables, kind="policy",
)  # fmt: skip

EXERCISE = Details(
    checks=(
        _check("by-hand", "small batches that can be done by hand", by_hand),
        _check("decodes", "a batch of decodes", decodes),
        _check("prompts", "whole prompts of B - 1, B and B + 1 tokens", prompts),
        _check("chunks", "chunks that start in the middle", middle),
        _check("again", "prompt and outputs computed again", again),
        _check("nothing-sampled", "a step that samples nothing", nothing_sampled),
        _check("spare-blocks", "tables that are longer than the step needs", spare_blocks),
        _check("random", "random batches", random_cases),
        _check("kept", "a batch keeps its numbers", kept),
        _check("refuses", "chunks and tables that do not fit are a ValueError", refused),
        NARROW,
        tiny_check("llama", "qwen3"),
        smollm2_check(),
    ),
    hints=(
        "Two chunks: a decode at position 5, then the first two tokens of a prompt. Write the "
        "seven tensors on paper. Which of them have an entry per token, which one per request, and "
        "which has one more than that? Which would be different if the two chunks changed places?",
        "A chunk covers the positions from its start up to its end, the end left out, and nearly "
        "everything follows from these two: tokens, positions, slots, and the length in the cache. "
        "Only query_starts and logits_rows count rows of the batch; the rest counts inside one "
        "request. An empty list says nothing of its type, so say it for every tensor.",
        "starts with a 0; all other lists empty\n"
        "for each chunk:\n"
        "    its end; refuse what the contract refuses\n"
        "    append its tokens, its positions, and a slot for each of these\n"
        "    append the number of tokens so far to the starts\n"
        "    append its end to the lengths\n"
        "    keep the blocks that its end needs, rounded up\n"
        "rows to sample from: the starts, the lengths and the numbers of known tokens tell\n"
        "fill the kept blocks up with 0 to the longest; make tensors of whole numbers of 64 bits",
    ),
    mistakes=tuple(
        Mistake(name, {"build_batch": f"judge.mistakes.batching_build:{function}"})
        for name, function in (
            ("positions are counted from the chunk, not from the request", "positions_of_chunk"),
            ("positions are counted through the whole batch", "positions_of_batch"),
            ("slots are counted from the chunk, not from the request", "slots_of_chunk"),
            ("the block table is not used: slots equal positions", "slots_are_positions"),
            ("slots lie in the first block and its neighbours", "slots_contiguous"),
            ("the last number of query_starts is missing", "starts_without_end"),
            ("query_starts holds the chunks' lengths, not where they start", "starts_are_lengths"),
            ("seq_lens counts only the chunk", "lens_of_chunk"),
            ("seq_lens counts only the chunk", "lens_and_rows_of_chunk"),
            ("seq_lens counts only the chunk", "all_by_chunk"),
            (BEFORE, "lens_before"),
            (BEFORE, "lens_and_rows_before"),
            (BEFORE, "all_by_start"),
            (KNOWN, "lens_known"),
            (KNOWN, "lens_and_rows_known"),
            ("a row of every chunk is sampled from, finished or not", "rows_of_every_chunk"),
            ("logits_rows are one too high", "rows_too_high"),
            ("logits_rows holds positions, not rows of the batch", "rows_are_positions"),
            ("logits_rows holds numbers of requests, not rows of the batch", "rows_are_requests"),
            ("logits_rows counts the whole request from its first row", "rows_by_length"),
            ("logits_rows holds -1 for a chunk that is not sampled from", "minus_one_for_none"),
            ("chunks of one token are always sampled from", "rows_of_single_tokens"),
            ("token_ids are taken from the start of the request", "tokens_from_zero"),
            ("only prompt tokens are looked at: outputs are left out", "prompt_tokens"),
            ("block_tables are filled up in front of the blocks", "filled_left"),
            ("block_tables are filled up with -1, which is no block", "filled_minus_one"),
            ("block_tables are not filled up to one width", "not_filled"),
            ("block_tables holds only the blocks that the chunk writes", "blocks_of_chunk"),
            (NOT_FULL, "full_blocks"),
            (NOT_FULL, "full_blocks_narrow"),
            ("an empty list became a float tensor: give the dtype", "float_if_empty"),
            ("int32 instead of int64", "int32"),
            ("decodes are moved to the front of the batch", "decodes_first"),
            ("a block table of too few blocks raises Python's own IndexError", "index_error"),
            ("a chunk beyond the known tokens goes unnoticed", "takes_unknown"),
            ("a chunk without tokens goes unnoticed", "takes_empty"),
        )
    ),
)  # fmt: skip
