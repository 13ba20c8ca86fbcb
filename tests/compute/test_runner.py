"""The runner: however requests are batched and chunked, each gets the tokens it gets alone."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_engine.compute.adapters import ContiguousAttention, SingleRequestAttention
from mini_engine.compute.attention import (
    PagedAttention,
    attention_over_contiguous,
    paged_attention,
)
from mini_engine.compute.kv_cache import PagedKVCache
from mini_engine.compute.naive import generate_naive
from mini_engine.compute.random_model import TINY_LLAMA, TINY_QWEN3, random_model
from mini_engine.control.request import Request
from mini_engine.interfaces import Schedule
from tests.compute.harness import (
    TIE_BAND,
    Bench,
    alone,
    logits_of,
    margins_of,
    random_prompt,
)

LLAMA, QWEN3 = random_model(TINY_LLAMA, 4), random_model(TINY_QWEN3, 4)
PROMPTS = [random_prompt(seed, length) for seed, length in enumerate([1, 3, 4, 5, 17, 40])]


@pytest.mark.parametrize("model", [LLAMA, QWEN3], ids=["llama", "qwen3"])
def test_the_prompts_of_this_file_leave_no_near_ties(model) -> None:
    """So tokens may be compared exactly, on any machine."""
    for prompt in PROMPTS:
        outputs = alone(model, prompt, 12)
        margins = margins_of(logits_of(model, prompt + outputs)[len(prompt) - 1 : -1])
        assert margins.min() > 10 * TIE_BAND


@pytest.mark.parametrize("model", [LLAMA, QWEN3], ids=["llama", "qwen3"])
@pytest.mark.parametrize("block_size", [1, 4, 16])
def test_paged_equals_contiguous_equals_naive(model, block_size: int) -> None:
    for prompt in PROMPTS:
        bench = Bench(model, block_size)
        expected = generate_naive(model, prompt, 12)
        assert alone(model, prompt, 12) == expected
        assert bench.generate([prompt], 12) == [expected]


@pytest.mark.parametrize("model", [LLAMA, QWEN3], ids=["llama", "qwen3"])
@pytest.mark.parametrize("chunk", [1, 2, 3, 4, 5, 1000])
def test_a_mixed_and_chunked_batch_equals_each_request_alone(model, chunk: int) -> None:
    expected = [alone(model, prompt, 12) for prompt in PROMPTS]
    assert Bench(model).generate(PROMPTS, 12, chunk) == expected


@pytest.mark.parametrize(
    "attention",
    [
        PagedAttention(TINY_LLAMA, padding_limit=math.inf),
        PagedAttention(TINY_LLAMA, padding_limit=0.0),
        ContiguousAttention(attention_over_contiguous),
        SingleRequestAttention(paged_attention),
    ],
    ids=["one gather", "one by one", "contiguous adapter", "paged adapter"],
)
def test_every_attention_gives_the_same_tokens(attention: object) -> None:
    expected = [alone(LLAMA, prompt, 12) for prompt in PROMPTS]
    assert Bench(LLAMA, attention=attention).generate(PROMPTS, 12, 7) == expected


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), max_size=25))
def test_any_order_of_chunks_gives_the_same_tokens(order: list[tuple[int, int]]) -> None:
    """Steps of one or two requests in any order, each with a chunk of its own size."""
    bench = Bench(LLAMA)
    requests = [bench.request(f"r{i}", prompt) for i, prompt in enumerate(PROMPTS[:4])]
    for first, (index, most) in enumerate(order):
        other = requests[(index + 1) % 4]
        bench.step([(requests[index], most)] + [(other, 1)] * (first % 2))
    for request, prompt in zip(requests, PROMPTS, strict=False):
        if request.output_token_ids:
            count = len(request.output_token_ids)
            assert request.output_token_ids == alone(LLAMA, prompt, count)


def test_case_38_another_permutation_of_blocks_gives_equal_bits() -> None:
    logits = []
    for seed in range(3):
        order = torch.randperm(128, generator=torch.Generator().manual_seed(seed)).tolist()
        bench = Bench(LLAMA, free_blocks=order)
        bench.generate(PROMPTS, 12, 7)
        logits.append(bench.logits)
    for other in logits[1:]:
        assert all(torch.equal(a, b) for a, b in zip(logits[0], other, strict=True))


@pytest.mark.parametrize("chunk", [3, 1000])
def test_case_38_poison_gives_equal_bits(chunk: int) -> None:
    logits = []
    for poison in (None, 1e4, -1e4):
        bench = Bench(LLAMA)
        bench.poison = poison
        bench.generate(PROMPTS, 12, chunk)
        logits.append(bench.logits)
    for other in logits[1:]:
        assert all(torch.equal(a, b) for a, b in zip(logits[0], other, strict=True))


def test_poison_is_seen_by_an_attention_that_reads_too_far() -> None:
    """REPORTS: key length set to the whole prompt. Without poison the zeros would hide it."""

    def reads_a_whole_block(query, k_blocks, v_blocks, block_table, seq_len, scale):
        key, value = k_blocks[block_table].flatten(0, 1), v_blocks[block_table].flatten(0, 1)
        return attention_over_contiguous(query, key, value, scale)

    logits = []
    for poison in (1e4, -1e4):
        bench = Bench(LLAMA, attention=SingleRequestAttention(reads_a_whole_block))
        bench.poison = poison
        bench.generate([PROMPTS[3]], 2)
        logits.append(bench.logits[0])
    assert not torch.equal(*logits)


def test_poison_leaves_written_slots_alone() -> None:
    bench = Bench(LLAMA)
    request = bench.request("a", PROMPTS[4])
    bench.step([(request, 6)])
    before = bench.cache.keys.clone()
    bench.poison = 5.0
    bench.step([(request, 1)])
    slots = bench.cache.keys.flatten(1, 2)
    assert torch.equal(slots[:, :6], before.flatten(1, 2)[:, :6])
    assert not (slots[:, 6] == 5.0).all()  # written by the step
    assert (slots[:, 7:] == 5.0).all()  # rest of the request's block, and all free blocks


def test_two_requests_with_shared_blocks_in_one_step() -> None:
    """The second reads K and V of blocks that the first writes in this very step."""
    prompt = PROMPTS[4]
    bench = Bench(LLAMA)
    first, second = bench.request("a", prompt), bench.request("b", prompt)
    first.block_table = [0, 1, 2, 3, 4]
    second.block_table = [0, 1, 2, 3, 5]
    second.num_computed = 16
    bench.free_blocks = list(range(6, 128))
    bench.poison = 1e4
    sampled = bench.step([(first, 17), (second, 1)])
    assert sampled == {"a": alone(LLAMA, prompt, 1)[0], "b": alone(LLAMA, prompt, 1)[0]}


def test_no_token_is_sampled_from_the_middle_of_a_prompt() -> None:
    bench = Bench(LLAMA)
    long, short = bench.request("long", PROMPTS[5]), bench.request("short", PROMPTS[1])
    assert bench.step([(long, 8)]) == {}
    assert list(bench.step([(long, 8), (short, 8)])) == ["short"]
    assert bench.logits[-1].shape == (1, 512)


def test_an_empty_step_runs_nothing() -> None:
    assert Bench(LLAMA).runner.run(Schedule()) == {}


def test_a_sampler_that_loses_a_row_is_found_out() -> None:
    bench = Bench(LLAMA)
    bench.runner.sampler = lambda logits, requests: []
    with pytest.raises(RuntimeError, match="0 tokens for 1 requests"):
        bench.step([(bench.request("a", [1, 2]), 2)])


def test_bfloat16_runs_end_to_end() -> None:
    model = random_model(TINY_LLAMA, 4, dtype=torch.bfloat16)
    bench = Bench(model)
    outputs = bench.generate(PROMPTS, 8, 7)
    assert bench.cache.keys.dtype == torch.bfloat16
    assert all(len(tokens) == 8 for tokens in outputs)
    agree = sum(
        tokens[0] == alone(LLAMA, prompt, 1)[0]
        for tokens, prompt in zip(outputs, PROMPTS, strict=True)
    )
    assert agree >= len(PROMPTS) - 2


def test_a_second_run_on_the_same_cache_is_the_same() -> None:
    bench = Bench(LLAMA, num_blocks=16)
    first = bench.generate([PROMPTS[4]], 8)
    bench.free_blocks = list(range(16))
    assert bench.generate([PROMPTS[4]], 8) == first


def test_the_cache_is_zeroed_and_knows_its_size() -> None:
    cache = PagedKVCache(TINY_QWEN3, 7, 4, torch.bfloat16)
    assert not cache.keys.any()
    assert not cache.values.any()
    assert cache.keys.shape == (3, 7, 4, 2, 32)
    assert cache.num_bytes == 7 * 4 * TINY_QWEN3.kv_bytes_per_token(2)


def test_requests_are_not_changed_by_a_run() -> None:
    bench = Bench(LLAMA)
    request = Request("a", PROMPTS[3])
    bench.step([(request, 2)])
    assert request.token_ids == PROMPTS[3]
    assert request.output_token_ids == []
