"""Sampling inside the engine: SEMANTICS 34 and 35 on a real model, stop strings, choices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from mini_engine import LLMEngine, SamplingParams
from mini_engine.compute.model import Model
from mini_engine.compute.random_model import TINY_LLAMA, random_tensors
from mini_engine.outputs import RequestOutput
from tests.compute.harness import load_oracle

PROMPTS = [[(7 * i + j * j) % 512 for j in range(3 + 5 * i)] for i in range(6)]
KINDS: list[dict[str, Any]] = [
    {"temperature": 1.0, "seed": 3},
    {"temperature": 0.7, "seed": 4, "top_p": 0.9},
    {},
    {"temperature": 1.5, "seed": 5, "top_k": 40, "repetition_penalty": 1.3},
    {"temperature": 1.0, "seed": 6, "min_p": 0.05, "presence_penalty": 0.5},
    {"temperature": 9.0},  # no seed: every run is another one, and its neighbours don't notice
]
PARAMS = [SamplingParams(max_tokens=12, ignore_eos=True, **kind) for kind in KINDS]
SCHEDULES: dict[str, dict[str, Any]] = {
    "chunks of 3": {"max_num_batched_tokens": 3},
    "chunks of 1": {"max_num_batched_tokens": 1},
    "two at a time": {"max_num_seqs": 2},
    "five at a time": {"max_num_seqs": 5},
    "preempted": {"num_blocks": 14},
    "no prefix cache": {"enable_prefix_caching": False},
}


@pytest.fixture(scope="module")
def tensors() -> dict[str, torch.Tensor]:
    return random_tensors(TINY_LLAMA, seed=5)


@pytest.fixture(scope="module")
def model(tensors: dict[str, torch.Tensor]) -> Model:
    return Model.from_tensors(TINY_LLAMA, tensors)


def engine(model: Model, **options: Any) -> LLMEngine:
    sizes = {"block_size": 4, "num_blocks": 200, "max_model_len": 64, "debug": True}
    return LLMEngine(model, device="cpu", **{**sizes, **options})


@pytest.fixture(scope="module")
def alone(model: Model) -> list[list[int]]:
    """Each request by itself."""
    with engine(model) as one:
        pairs = zip(PROMPTS, PARAMS, strict=True)
        return [one.generate([prompt], params)[0].token_ids for prompt, params in pairs]


@pytest.mark.parametrize("schedule", list(SCHEDULES))
def test_case_35_the_same_tokens_however_scheduled(
    model: Model, alone: list[list[int]], schedule: str
) -> None:
    with engine(model, **SCHEDULES[schedule]) as one:
        outputs = one.generate(PROMPTS, PARAMS)
        assert [o.token_ids for o in outputs[:5]] == alone[:5]
        preempted = any(record.preempted for record in one.trace)
    assert preempted == (schedule == "preempted")


def test_case_35_without_a_seed_two_runs_differ(model: Model, alone: list[list[int]]) -> None:
    with engine(model) as one:
        assert one.generate(PROMPTS[5:], PARAMS[5:])[0].token_ids != alone[5]


@torch.inference_mode()
def test_case_34_logprobs_are_those_of_transformers(
    model: Model, tensors: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    """Of the raw distribution: neither temperature nor penalties show. Also for the prompt."""
    oracle = load_oracle(TINY_LLAMA, tensors, tmp_path)
    asked: dict[str, Any] = {"logprobs": 3, "prompt_logprobs": 2, "max_tokens": 9}
    params = [
        SamplingParams(**asked),
        SamplingParams(**asked, temperature=1.0, seed=1, repetition_penalty=1.5),
    ]
    prompt = PROMPTS[4]
    # Chunks, and a prefix that other requests have computed already: logprobs miss nothing.
    with engine(model, max_num_batched_tokens=7) as one:
        one.generate([prompt])
        outputs = one.generate([prompt, prompt], params)
    for output in outputs:
        ids = torch.tensor([prompt + output.token_ids])
        expected = oracle(ids).logits[0].log_softmax(-1)
        check_prompt(output, expected)
        assert output.logprobs is not None
        assert len(output.logprobs) == len(output.token_ids) == 9
        rows = expected[len(prompt) - 1 : -1]
        for row, token, entry in zip(rows, output.token_ids, output.logprobs, strict=True):
            assert entry.token_id == token
            assert entry.logprob == pytest.approx(float(row[token]), abs=1e-3)
            assert entry.rank == int((row > row[token]).sum()) + 1
            best = [value for _, value in entry.top]
            assert best == pytest.approx(row.topk(3).values.tolist(), abs=1e-3)
    assert outputs[0].token_ids != outputs[1].token_ids


def check_prompt(output: RequestOutput, expected: torch.Tensor) -> None:
    prompt = output.prompt_token_ids
    assert output.prompt_logprobs is not None
    first, *others = output.prompt_logprobs
    assert first is None  # nothing comes before it
    for row, token, entry in zip(expected, prompt[1:], others, strict=False):
        assert entry is not None
        assert entry.token_id == token
        assert entry.logprob == pytest.approx(float(row[token]), abs=1e-3)
        assert len(entry.top) == 2
    assert len(others) == len(prompt) - 1


def test_choices_differ_share_the_prompt_and_can_be_repeated(model: Model) -> None:
    params = SamplingParams(max_tokens=6, temperature=5.0, seed=9, n=3, ignore_eos=True)
    prompt = PROMPTS[5]
    with engine(model) as one:
        first = one.generate([prompt], params)
        hits = [hit for record in one.trace for hit in record.cached.values()]
        second = one.generate([prompt, PROMPTS[0]], [params, SamplingParams(max_tokens=1)])
    assert [o.choice for o in first] == [0, 1, 2]
    assert len({tuple(o.token_ids) for o in first}) == 3
    assert [o.token_ids for o in second[:3]] == [o.token_ids for o in first]
    assert len(second) == 4
    full = (len(prompt) - 1) // 4 * 4
    assert hits == [0, full, full]  # in one step, and only the first computes the prompt


def test_choices_are_all_queued_or_none(model: Model) -> None:
    params = SamplingParams(temperature=1.0, n=3)
    with engine(model) as one:
        one.add_request([1, 2], request_id="x.2")
        with pytest.raises(ValueError, match=r"'x.2' is being served already"):
            one.add_choices([1, 2], params, request_id="x")
        assert [r.request_id for r in one.scheduler.waiting] == ["x.2"]
        with pytest.raises(ValueError, match="n is 3; use add_choices"):
            one.add_request([1, 2], params)


def test_parameters_that_this_engine_cannot_follow_are_refused(model: Model) -> None:
    with engine(model) as one:
        with pytest.raises(ValueError, match="token 512; the vocabulary has 512"):
            one.add_request([1], SamplingParams(logit_bias={512: 1.0}))
        with pytest.raises(ValueError, match="token 700; the vocabulary has 512"):
            one.add_request([1], SamplingParams(stop_token_ids=(700,)))
        with pytest.raises(ValueError, match="stop strings need text"):
            one.add_request([1], SamplingParams(stop=("x",)))
        assert not one.has_unfinished


def test_a_forbidden_token_is_never_chosen(model: Model) -> None:
    with engine(model) as one:
        plain = one.generate([PROMPTS[1]], SamplingParams(max_tokens=8))[0].token_ids
        bias = dict.fromkeys(plain, -100.0)
        other = one.generate([PROMPTS[1]], SamplingParams(max_tokens=8, logit_bias=bias))[0]
    assert not set(plain) & set(other.token_ids)


def test_min_tokens_holds_the_end_token_off(model: Model) -> None:
    with engine(model) as one:
        plain = one.generate([PROMPTS[1]], SamplingParams(max_tokens=8))[0].token_ids
        ends = {"stop_token_ids": (plain[0],), "max_tokens": 8}
        assert one.generate([PROMPTS[1]], SamplingParams(**ends))[0].token_ids == plain[:1]
        longer = one.generate([PROMPTS[1]], SamplingParams(**ends, min_tokens=4))[0]
    assert len(longer.token_ids) >= 4
    assert plain[0] not in longer.token_ids[:4]


def test_case_28_a_stop_string_ends_the_request_and_its_blocks_come_back() -> None:
    question = "Name three primary colors."
    with LLMEngine(device="cpu", max_model_len=256, num_blocks=64) as one:
        prompt = one.chat_prompt(question)
        plain = one.generate([prompt], SamplingParams(max_tokens=24))[0]
        words = plain.text.split()
        stop = words[4]
        before = plain.text.find(stop)
        output = one.generate([prompt], SamplingParams(max_tokens=24, stop=("zzz", stop)))[0]
        assert output.text == plain.text[:before]
        assert (output.finish_reason, output.stop) == ("stop", stop)
        assert output.token_ids == plain.token_ids[: len(output.token_ids)]
        assert stop in one.tokenizer.decode(output.token_ids)
        record = one.trace[-1]
        assert list(record.finished.values()) == ["stop"]
        assert record.free_blocks_end == 64
        assert record.running_end == []
