"""`python -m mini_engine`: an answer on standard output, the trace beside it, clear errors."""

from __future__ import annotations

import json

import pytest

from mini_engine.__main__ import main

QUESTION = "What is the capital of France?"
SMALL = ["--device", "cpu", "--max-tokens", "8", "--num-blocks", "20", "--max-model-len", "200"]


def test_one_prompt_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([QUESTION, *SMALL]) == 0
    assert "Paris" in capsys.readouterr().out


def test_json_with_trace_holds_answers_and_steps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([QUESTION, "Say hello.", *SMALL, "--json", "--trace"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [output["prompt"] for output in result["outputs"]] == [QUESTION, "Say hello."]
    assert "Paris" in result["outputs"][0]["text"]
    assert result["trace_version"] == 2
    assert result["config"]["num_blocks"] == 20
    sampled = [token for step in result["trace"] for token in step["sampled"].values()]
    assert sorted(sampled) == sorted(t for o in result["outputs"] for t in o["token_ids"])


def test_trace_shows_each_step_beside_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([QUESTION, *SMALL, "--trace", "--max-num-batched-tokens", "16"]) == 0
    shown = capsys.readouterr()
    assert "Paris" in shown.out
    assert "step 0: request-0 16 | 16 of 16 tokens" in shown.err
    assert "request-0 ended:" in shown.err


def test_cuda_graphs_are_one_flag_and_the_trace_names_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    small = ["--device", "cpu", "--max-tokens", "3", "--max-model-len", "64"]
    assert main([QUESTION, *small, "--trace", "--cuda-graphs"]) == 0
    steps = capsys.readouterr().err.splitlines()
    assert ["graph of 1" in step for step in steps] == [False, True, True]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "./no-such-folder"], "no-such-folder"),
        (["--max-tokens", "0"], "max_tokens must be 1 or more, got 0"),
        (["--max-model-len", "10", "--num-blocks", "4"], "max_model_len is 10"),
    ],
)
def test_what_cannot_be_served_is_an_error_message(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([QUESTION, *arguments]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""


def test_nothing_to_answer_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([""])
    assert left.value.code == 2
    assert "nothing to answer" in capsys.readouterr().err
