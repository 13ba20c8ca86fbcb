"""The judge of sampling: its own arithmetic, what rounding excuses, and what a verdict says."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

from judge import sampling_calls, sampling_oracle, tensor_calls, wire
from judge.api import Case, Context
from judge.exercises import (
    sampling_filter,
    sampling_logprobs,
    sampling_penalties,
    sampling_sample,
)
from judge.sampling_checks import DRAWN, alone, engine_check, told_check
from judge.sampling_compare import by_row, filtered, tokens
from judge.sampling_draws import shares
from judge.sampling_logprobs import in_engine, one_call, rounded
from judge.sampling_penalties import finite, penalized
from judge.tensor_checks import events
from mini_engine.compute.logprobs import token_logprobs
from mini_engine.compute.plain_sampler import apply_penalties, filter_logits, sample
from mini_engine.interfaces import TokenLogprobs


def answer(case: Case, function: Any, run: Any = tensor_calls.call, name: str = "") -> Any:
    payload = wire.copy(case.payload, wire.torch_tensor)
    return wire.copy(run({name or payload.get("function"): function}, payload, Context()))


def answered(case: Case, function: Any) -> Any:
    return answer(case, function, sampling_calls.sample, "sample")


def lines(found: Any) -> str:
    return "" if found is None else "\n".join(found.lines)


def test_the_oracle_of_filters_agrees_with_the_reference() -> None:
    for check in sampling_filter.EXERCISE.checks[:12]:
        for case in check.cases(random.Random(1)):
            got = answer(case, filter_logits)
            assert filtered(case, got, got) is None, (check.name, case.label)


def test_case_32_in_float64() -> None:
    logits = np.array([2.0, 1.0, 0.0, -1.0])

    def kept(**numbers: float) -> list[int]:
        row = sampling_oracle.filtered(logits, {**sampling_oracle.OFF, **numbers})
        return np.flatnonzero(row.kept).tolist()

    assert kept(top_p=0.8) == [0, 1]
    assert kept(top_p=0.6) == kept(top_k=2, top_p=0.7) == [0]
    assert kept() == kept(top_k=-1) == kept(top_k=9) == [0, 1, 2, 3]


def test_borders_that_rounding_could_decide_are_seen() -> None:
    logits = np.log(np.array([0.5, 0.3, 0.2]))

    def clear(**numbers: float) -> bool:
        return sampling_oracle.filtered(logits, {**sampling_oracle.OFF, **numbers}).clear

    assert not clear(top_p=0.8)
    assert not clear(min_p=0.6)
    assert clear(top_p=0.7)
    assert clear(min_p=0.5)
    twins = np.zeros(3)
    assert not sampling_oracle.filtered(twins, {**sampling_oracle.OFF, "top_k": 2}).clear


@pytest.mark.parametrize("exercise", [sampling_filter, sampling_penalties, sampling_sample])
def test_every_seed_has_cases(exercise: Any) -> None:
    for check in exercise.EXERCISE.checks:
        if not check.last:
            for seed in range(100):
                assert check.cases(random.Random(f"{seed} {check.name}")), seed


def test_a_number_added_to_a_row_is_the_same_answer() -> None:
    case = sampling_filter.temperatures(random.Random(4))[0]
    right = answer(case, filter_logits)
    moved = answer(case, lambda *args: filter_logits(*args).log_softmax(-1))
    assert filtered(case, right, moved) is None
    first, second = (by_row(case, wire.copy(a))["value"].numpy() for a in (right, moved))
    finite = np.isfinite(first)
    assert np.allclose(first[finite], second[finite], atol=1e-4)
    assert filtered(case, right, answer(case, lambda *args: 2 * filter_logits(*args))) is not None


def test_a_wrong_filter_is_told_by_its_first_token() -> None:
    case = sampling_filter.by_hand(random.Random(1))[1]
    wrong = answer(case, lambda logits, *numbers: logits)
    said = lines(filtered(case, answer(case, filter_logits), wrong))
    assert "top_p 0.8: expected to keep the tokens 0, 1, got the tokens 0, 1, 2, 3" in said
    assert "token 2, the 3rd best with probability 0.08714, is kept, expected to be dropped" in said
    assert "the tokens better than it have 0.8808 together" in said
    nothing = answer(case, lambda logits, *numbers: torch.full_like(logits, -torch.inf))
    assert "got none" in lines(filtered(case, nothing, nothing))
    nan = answer(case, lambda logits, *numbers: logits * torch.nan)
    assert "4 of 4 numbers are NaN" in lines(filtered(case, nan, nan))


def test_only_a_near_tie_of_scores_excuses_another_token() -> None:
    case = sampling_sample.single_draws(random.Random(2))[0]
    right = answered(case, sample)
    assert tokens(case, right, right) is None
    (token,) = right["tokens"][0]
    other = (token + 1) % 30
    wrong = {**right, "tokens": [[other]]}
    said = lines(tokens(case, right, wrong))
    assert f"expected token {token}, got {other}" in said
    assert "divided logit plus noise: " in said
    scores = right["scores"].numpy()
    scores[0, other] = scores[0, token] - 1e-5
    near = {**right, "scores": wire.copy(torch.tensor(scores))}
    assert tokens(case, near, wrong) is None
    greedy = Case("", {**case.payload, "requests": sampling_sample.greedy_rows(random.Random(1))[0]
                       .payload["requests"][:1]})  # fmt: skip
    assert "the logit of" in lines(tokens(greedy, near, wrong))


def test_dropped_and_impossible_tokens_are_called_so() -> None:
    case = sampling_sample.single_draws(random.Random(2))[6]
    right = answered(case, sample)
    dropped = int(right["scores"].numpy()[0].argmin())
    said = lines(tokens(case, right, {**right, "tokens": [[dropped]]}))
    assert f"token {dropped} is dropped by the filters" in said
    assert "there are 30 tokens" in lines(tokens(case, right, {**right, "tokens": [[30]]}))


def test_calls_are_named_by_their_rows() -> None:
    case = sampling_sample.batches(random.Random(1))[0]
    right = answered(case, sample)
    wrong = [list(group) for group in right["tokens"]]
    wrong[8][1] += 1
    said = lines(tokens(case, right, {**right, "tokens": wrong}))
    assert "call 9 of 14: rows 0, 1 together" in said
    changed = {**right, "changed": ["logits"]}
    assert "changed its argument logits" in lines(tokens(case, right, changed))


@pytest.mark.parametrize("number", range(4))
def test_case_36_the_reference_lies_within_4_sigma_of_each_distribution(number: int) -> None:
    case = sampling_sample.many_draws(random.Random(1))[number]
    right = answer(case, sample, sampling_calls.draws, "sample")
    assert shares(case, right, right) is None
    always = [0] * len(right)
    assert "token 0 has the probability" in lines(shares(case, right, always))
    assert "expected ints from 0 to 3" in lines(shares(case, right, [7, *always[1:]]))
    assert f"a list of {len(right):,} ints".replace(",", "") in lines(shares(case, right, [0]))


def test_engine_cases_have_their_events_and_seeds() -> None:
    together, one_by_one = engine_check().cases(random.Random(3))
    plain = {**together.payload, "requests": [
        {k: v for k, v in r.items() if k != "params"} for r in together.payload["requests"]
    ]}  # fmt: skip
    assert all(events(plain).values())
    params = [request["params"] for request in together.payload["requests"]]
    assert len(params) == len(DRAWN)
    assert all(("seed" in one) == bool(one.get("temperature")) for one in params)
    assert one_by_one.payload == alone(together.payload)


def test_inside_the_engine_random_requests_really_draw() -> None:
    """Else a sampler that is always greedy would pass there."""
    together, one_by_one = engine_check().cases(random.Random(5))
    right = sampling_calls.in_engine({"sample": sample}, together.payload, Context())
    greedy = {**together.payload, "requests": [{**r, "params": {}} for r in
                                               together.payload["requests"]]}  # fmt: skip
    best = sampling_calls.in_engine({"sample": sample}, greedy, Context())
    differ = {name for name in right["outputs"] if right["outputs"][name] != best["outputs"][name]}
    random_ones = {r["id"] for r in together.payload["requests"] if r["params"].get("temperature")}
    assert differ <= random_ones
    assert len(differ) >= 3
    again = sampling_calls.in_engine({"sample": sample}, one_by_one.payload, Context())
    assert again["outputs"] == right["outputs"], "alone, batched, preempted: the same tokens"


def test_the_oracle_of_penalties_agrees_with_the_reference() -> None:
    for check in sampling_penalties.EXERCISE.checks[:10]:
        for case in check.cases(random.Random(1)):
            got = finite(case, answer(case, apply_penalties))
            assert penalized(case, got, got) is None, (check.name, case.label)


def test_a_wrong_penalty_is_told_by_what_its_token_was_used_for() -> None:
    case = sampling_penalties.by_hand(random.Random(1))[4]
    right, wrong = (answer(case, function) for function in (apply_penalties, lambda x, *_: x + 0))
    said = lines(penalized(case, finite(case, right), finite(case, wrong)))
    assert "first wrong at [0, 0] (row 0, token 0): expected 1, got 2" in said
    assert "token 0: logit 2, 0 times in the prompt, 3 times in the output; repetition 2" in said


def told(case: Case, function: Any) -> Any:
    return answer(case, function, sampling_calls.logprobs, "token_logprobs")


def test_log_probabilities_are_compared_entry_by_entry() -> None:
    case = sampling_logprobs.by_hand(random.Random(1))[0]
    right = told(case, token_logprobs)
    assert one_call(case, right, right) is None
    for entry, words in (
        (TokenLogprobs(3, -3.44019, 3, ((0, -0.44019), (1, -1.44019))), "rank: expected 4, got 3"),
        (TokenLogprobs(3, -3.4, 4, ((0, -0.44019), (1, -1.44019))), "logprob: expected -3.440190"),
        (TokenLogprobs(3, -3.44019, 4, ((0, -0.44019),)), "top: expected 2 pairs"),
        (TokenLogprobs(3, -3.44019, 4, ((0, -0.44019), (0, -0.44019))), "top[1]: expected (1, "),
        (TokenLogprobs(True, -3.44019, 4, ()), "token_id: expected 3, got True"),  # type: ignore[arg-type]
        (7, "expected a TokenLogprobs, got 7"),
    ):
        wrong = told(case, lambda *args, entry=entry: [entry])
        assert words in lines(one_call(case, right, wrong)), words
    assert "expected a list" in lines(one_call(case, right, told(case, lambda *args: [])))
    listed = TokenLogprobs(3, -3.44019, 4, [[0, -0.44019], [1, -1.44019]])  # type: ignore[arg-type]
    assert one_call(case, right, told(case, lambda *args: [listed])) is None


def test_equal_logits_may_come_in_any_order_but_not_twice() -> None:
    made = sampling_logprobs.case([[1.0, 1.0, 0.0]], [0], [2], "")
    right = told(made, token_logprobs)
    value = float(torch.tensor([1.0, 1.0, 0.0]).log_softmax(-1)[0])
    for pairs, words in ((((1, value), (0, value)), ""), (((1, value), (1, value)), "twice")):
        entry = TokenLogprobs(0, value, 1, pairs)
        found = one_call(made, right, told(made, lambda *args, entry=entry: [entry]))
        assert words in lines(found)
        assert bool(found) == bool(words)


def test_what_two_runs_of_one_mistake_share_is_rounded() -> None:
    assert rounded({"value": [(1, -0.123456), float("nan")]}) == {"value": [[1, -0.12], "nan"]}
    scalar = wire.copy(torch.tensor(0.126))
    assert rounded(scalar) == ["float32", 0.13]


def test_inside_the_engine_every_request_gets_what_it_asked_for() -> None:
    case, _ = told_check("tiny").cases(random.Random(5))
    right = sampling_calls.with_logprobs(
        {"token_logprobs": token_logprobs}, case.payload, Context()
    )
    assert in_engine(case, right, right) is None
    asked = {r["id"]: r["params"].get("logprobs") for r in case.payload["requests"]}
    for name, count in asked.items():
        entries = right["logprobs"][name]
        assert (entries is None) == (count is None)
        if entries is not None:
            assert len(entries) == len(right["outputs"][name][0])
            assert {len(entry["top"]) for entry in entries} == {count}
    missing = {**right, "logprobs": {**right["logprobs"], "request-0": []}}
    assert "request-0: expected" in lines(in_engine(case, right, missing))
