"""What a request may ask for: ranges, types, and errors that say what to do."""

from __future__ import annotations

from typing import Any

import pytest

from mini_engine.sampling_params import SamplingParams

BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"temperature": -0.1}, ValueError, "temperature must be 0 or more, got -0.1"),
    ({"temperature": float("nan")}, ValueError, "temperature must be 0 or more, got nan"),
    ({"temperature": float("inf")}, ValueError, "temperature"),
    ({"temperature": "hot"}, TypeError, "temperature must be a number, got 'hot'"),
    ({"temperature": True}, TypeError, "temperature must be a number, got True"),
    ({"top_p": 0}, ValueError, "top_p must be above 0 and at most 1, got 0"),
    ({"top_p": 1.01}, ValueError, "top_p must be above 0 and at most 1, got 1.01"),
    ({"min_p": -0.1}, ValueError, "min_p must be 0 or more and at most 1"),
    ({"top_k": -2}, ValueError, "top_k must be -1 or more, got -2"),
    ({"top_k": 2.0}, TypeError, "top_k must be an int"),
    ({"presence_penalty": 2.5}, ValueError, "presence_penalty must be -2 or more and at most 2"),
    ({"frequency_penalty": -3}, ValueError, "frequency_penalty"),
    ({"repetition_penalty": 0}, ValueError, "repetition_penalty must be above 0"),
    ({"logit_bias": {5: 101}}, ValueError, r"logit_bias\[5\] must be -100 or more and at most 100"),
    ({"logit_bias": {"5": 1}}, TypeError, "logit_bias .* must be an int, got '5'"),
    ({"logit_bias": [(5, 1)]}, TypeError, "logit_bias must map token ids to numbers"),
    ({"seed": 2**64}, ValueError, "seed must fit 64 bits"),
    ({"seed": 1.5}, TypeError, "seed must be an int"),
    ({"logprobs": 21}, ValueError, "logprobs must be at most 20, got 21"),
    ({"prompt_logprobs": -1}, ValueError, "prompt_logprobs must be 0 or more, got -1"),
    ({"min_tokens": 9, "max_tokens": 8}, ValueError, "min_tokens=9 is more than max_tokens=8"),
    ({"max_tokens": 0}, ValueError, "max_tokens must be 1 or more, got 0"),
    ({"stop": ("x", "")}, ValueError, "stop holds an empty string"),
    ({"stop": (1,)}, TypeError, "stop must be strings, got 1"),
    ({"stop_token_ids": "2"}, TypeError, "stop_token_ids must be token ids"),
    ({"n": 0}, ValueError, "n must be 1 or more"),
    ({"n": 2}, ValueError, "n=2 with temperature 0 would give 2 equal choices"),
    ({"ignore_eos": 1}, TypeError, "ignore_eos must be a bool, got 1"),
]


@pytest.mark.parametrize(("fields", "error", "message"), BAD, ids=[str(row[0]) for row in BAD])
def test_bad_parameters_are_refused(
    fields: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        SamplingParams(**fields)


def test_what_is_given_is_kept_and_later_changes_of_it_change_nothing() -> None:
    bias, stop = {3: 1.5}, ["a", "b"]
    params = SamplingParams(logit_bias=bias, stop=stop, seed=2**64 - 1, top_k=-1)  # type: ignore[arg-type]
    bias[3], stop[0] = 9.0, "z"
    assert params.logit_bias == {3: 1.5}
    assert params.stop == ("a", "b")
    assert SamplingParams(stop="ab").stop == ("ab",)  # type: ignore[arg-type]


def test_the_default_is_greedy_and_changes_no_logits() -> None:
    assert SamplingParams().greedy
    assert not SamplingParams().has_penalties
    assert not SamplingParams(temperature=0.1).greedy
    for name in ("presence_penalty", "frequency_penalty"):
        assert SamplingParams(**{name: -0.5}).has_penalties
    assert SamplingParams(repetition_penalty=1.1).has_penalties
