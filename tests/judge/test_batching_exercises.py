"""What the judge says of flat batches, and what it lets pass."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from judge import wire
from judge.api import Case, Context
from judge.batch_calls import build
from judge.batch_compare import as_read, exact_tables, same_batch
from judge.exercises.batching_build_batch import batch, chunk, spare_blocks
from judge.exercises.batching_varlen_attention import answer, averages, mixed, poisoned
from judge.tensor_calls import call
from judge.tensor_compare import TINY, Truth, number_lines
from judge.varlen_cases import oracle
from mini_engine.compute.attention_varlen import varlen_attention
from mini_engine.compute.batch import build_batch
from mini_engine.interfaces import Batch


def built(case: Case, function: Callable[..., Any]) -> Any:
    return wire.copy(build({"build_batch": function}, wire.copy(case.payload), Context()))


def verdict(case: Case, function: Callable[..., Any]) -> str:
    """The lines of the Difference, or nothing."""
    right, got = (as_read(case, built(case, f)) for f in (build_batch, function))
    found = same_batch(case, right, got)
    return "\n".join(found.lines) if found else ""


def changed(**fields: Callable[[Batch], torch.Tensor]) -> Callable[..., Batch]:
    def function(chunks: Any, block_size: int) -> Batch:
        made = build_batch(chunks, block_size)
        return replace(made, **{name: make(made) for name, make in fields.items()})

    return function


@pytest.fixture
def case() -> Case:
    rng = random.Random(0)
    decode = chunk(rng, "a", 5, 1, 6, 4, outputs=2, table=[3, 8])
    return batch(4, decode, chunk(rng, "b", 0, 2, 7, 4, table=[1]))


def test_a_wrong_slot_names_request_position_and_arithmetic(case: Case) -> None:
    said = verdict(case, changed(slot_mapping=lambda made: made.slot_mapping + 1))
    assert "slot_mapping: 3 of 3 numbers are wrong, the first at [0]: expected 33, got 34" in said
    assert "token 0 of the chunk of a, at position 5: block_table[1] = 8, offset 1" in said


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "None is what a function without a return gives"),
        ({}, "expected a Batch, got a value of type dict"),
        (7, "expected a Batch, got a value of type int"),
    ],
)
def test_what_is_no_batch_is_said_to_be_none(case: Case, value: Any, words: str) -> None:
    assert words in verdict(case, lambda chunks, block_size: value)


def test_an_exception_is_no_batch_either(case: Case) -> None:
    def ragged(chunks: Any, block_size: int) -> Any:
        return torch.tensor([[1, 2], [3]])

    assert "expected a Batch, but it raised ValueError" in verdict(case, ragged)


def test_a_field_that_is_no_tensor_is_named(case: Case) -> None:
    said = verdict(case, changed(seq_lens=lambda made: made.seq_lens.tolist()))
    assert "seq_lens: expected an int64 tensor, got [6, 2]" in said


def test_wider_tables_pass_and_other_padding_does_not(case: Case) -> None:
    def wider(number: int) -> Callable[..., Batch]:
        pad = torch.nn.functional.pad
        return changed(block_tables=lambda made: pad(made.block_tables, (0, 2), value=number))

    assert verdict(case, wider(0)) == ""
    assert "block_tables" in verdict(case, wider(-1))
    assert "block_tables" in verdict(case, wider(5))
    narrower = changed(block_tables=lambda made: made.block_tables[:, :1])
    assert "the shape is [2, 1], expected [2, 2]" in verdict(case, narrower)


@pytest.mark.parametrize("number", range(2))
def test_a_request_s_own_further_blocks_may_follow(number: int) -> None:
    case = spare_blocks(random.Random(3))[number]

    def whole_tables(chunks: Any, block_size: int) -> Batch:
        tables = [one.request.block_table for one in chunks]
        width = max(map(len, tables))
        rows = [table + [0] * (width - len(table)) for table in tables]
        return replace(build_batch(chunks, block_size), block_tables=torch.tensor(rows))

    assert verdict(case, whole_tables) == ""
    right, got = built(case, build_batch), built(case, whole_tables)
    assert same_batch(case, right, got) is not None, "the policy check looks at the exact form"


def test_the_oracle_of_attention_takes_requests_apart() -> None:
    case = mixed(random.Random(1))[1]
    payload = wire.copy(case.payload, wire.torch_tensor)
    got = wire.copy(call({"varlen_attention": varlen_attention}, payload, Context()))
    assert answer(case, got, got) is None
    truth = oracle(case.payload)
    assert truth.numbers.shape == got["value"].shape

    def one_row(*args: Any) -> torch.Tensor:
        out = varlen_attention(*args)
        out[2] += 1
        return out

    wrong = wire.copy(call({"varlen_attention": one_row}, payload, Context()))
    found = answer(case, got, wrong)
    assert found is not None
    starts, lens = case.payload["args"][3], case.payload["args"][4]
    position = lens[1] - (starts[2] - 2)
    assert f"row 2 belongs to request 1 and stands at position {position}" in found.lines[-1]


def test_what_the_call_changed_is_said(case: Case) -> None:
    def fills_up(chunks: Any, block_size: int) -> Batch:
        made = build_batch(chunks, block_size)
        chunks[1].request.block_table.append(0)
        return made

    said = verdict(case, fills_up)
    assert "the batch is right, but the call changed a request:" in said
    assert "block_table of b: was [1], is [1, 0]" in said


def test_the_tables_policy_looks_at_tables_alone(case: Case) -> None:
    right = built(case, build_batch)
    wrong_lens = built(case, changed(seq_lens=lambda made: made.seq_lens + 1))
    assert exact_tables(case, right, wrong_lens) is None
    wider = built(case, changed(block_tables=lambda made: made.block_tables.repeat(1, 2)))
    assert exact_tables(case, right, wider) is not None


def test_no_number_of_tolerance_is_named_where_zero_is_expected() -> None:
    truth = Truth(np.zeros((1, 1)), np.full((1, 1), TINY), ("row", "number"))
    said = "\n".join(number_lines(truth, np.ones((1, 1))))
    assert "largest absolute error 1, expected exactly" in said


def attended(case: Case, function: Callable[..., Any]) -> Any:
    payload = wire.copy(case.payload, wire.torch_tensor)
    return wire.copy(call({"varlen_attention": function}, payload, Context()))


@pytest.mark.parametrize(("cases", "said"), [(averages, False), (poisoned, True)])
def test_poison_is_named_only_where_there_is_some(cases: Any, said: bool) -> None:
    def large(*args: Any) -> torch.Tensor:
        return varlen_attention(*args) + 150

    case = cases(random.Random(2))[1]
    found = answer(case, attended(case, varlen_attention), attended(case, large))
    assert found is not None
    assert any("nobody's tokens" in line for line in found.lines) is said
