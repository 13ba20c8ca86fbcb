"""The offline benchmark: its workloads, its counts of operations and bytes, and a small run."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from mini_engine.benchmarks import offline
from mini_engine.benchmarks.limits import (
    Limits,
    forward_flops,
    measure_limits,
    reached,
    weight_bytes,
)
from mini_engine.benchmarks.offline import main, measure
from mini_engine.benchmarks.workloads import WORKLOADS, Workload, make_workload
from mini_engine.compute.random_model import TINY_LLAMA, TINY_QWEN3, random_model
from mini_engine.trace import StepRecord, StepTimes


@pytest.mark.parametrize(
    ("name", "count", "shortest", "longest"),
    [
        ("mixed", 16, 16, 256),
        ("alone", 1, 16, 256),
        ("many", 64, 16, 256),
        ("long", 4, 2048, 2048),
        ("shared", 16, 528, 528),
    ],
)
def test_workloads_are_as_announced_and_repeat(
    name: str, count: int, shortest: int, longest: int
) -> None:
    workload = make_workload(name, vocab_size=500)
    lengths = [len(prompt) for prompt in workload.prompts]
    assert len(lengths) == count
    assert shortest <= min(lengths) <= max(lengths) <= longest
    assert workload == make_workload(name, vocab_size=500)
    assert all(10 <= token < 500 for prompt in workload.prompts for token in prompt)
    assert workload.longest == max(lengths) + workload.new_tokens


def test_the_workloads_that_depend_on_others() -> None:
    prompts = make_workload("shared", 500).prompts
    assert len({tuple(prompt[:512]) for prompt in prompts}) == 1
    assert len({tuple(prompt[512:]) for prompt in prompts}) == 16
    assert make_workload("alone", 500).prompts == make_workload("mixed", 500).prompts[:1]
    with pytest.raises(ValueError, match="no workload 'other'; there are: mixed, alone"):
        make_workload("other", 500)
    assert set(WORKLOADS) == {"mixed", "alone", "many", "long", "shared"}


@pytest.mark.parametrize("config", [TINY_LLAMA, TINY_QWEN3])
@pytest.mark.parametrize("tokens", [1, 7])
def test_operations_are_those_that_torch_counts(config, tokens: int) -> None:
    """All but attention, which torch's counter takes for a full square."""
    model = random_model(config, seed=0)

    def attend(layer, query, key, value):
        return torch.zeros_like(query)

    with FlopCounterMode(display=False) as counter:
        hidden = model(torch.arange(tokens), torch.arange(tokens), attend)
        model.logits(hidden[-1:])
    pairs = tokens * (tokens + 1) // 2
    attention = 4 * config.num_layers * config.num_heads * config.head_dim * pairs
    assert forward_flops(config, [(0, tokens)], 1) - attention == counter.get_total_flops()


def test_chunks_cost_together_what_the_whole_costs() -> None:
    whole = forward_flops(TINY_LLAMA, [(0, 100)], 1)
    parts = [forward_flops(TINY_LLAMA, [chunk], 0) for chunk in ((0, 30), (30, 69))]
    assert sum(parts) + forward_flops(TINY_LLAMA, [(99, 1)], 1) == whole


def test_bytes_of_tied_and_untied_weights() -> None:
    tied, untied = random_model(TINY_QWEN3, seed=0), random_model(TINY_LLAMA, seed=0)
    assert weight_bytes(tied) == sum(w.nbytes for w in tied.parameters())
    embeddings = TINY_LLAMA.vocab_size * TINY_LLAMA.hidden_size * 4
    assert weight_bytes(untied) == sum(w.nbytes for w in untied.parameters()) - embeddings


def test_shares_of_the_limits() -> None:
    model = random_model(TINY_LLAMA, seed=0)
    times = StepTimes(start=0, schedule=0, run=2.0, update=0, end=2)
    decode = StepRecord(1, scheduled={"a": 1}, computed={"a": 0}, times=times)
    prefill = StepRecord(0, scheduled={"a": 5}, computed={"a": 0}, sampled={"a": 1}, times=times)
    limits = Limits(
        bandwidth=float(weight_bytes(model)), flops=float(forward_flops(TINY_LLAMA, [(0, 5)], 1))
    )
    assert reached(model, [prefill, decode], limits) == {"decode": 0.5, "prefill": 0.5}
    assert reached(model, [decode], limits).keys() == {"decode"}
    assert reached(model, [], limits) == {}


def test_ratios_are_of_the_first_and_wrong_lengths_are_refused() -> None:
    workload = Workload("w", "", [[1], [2]], 2)

    def serve(*answers: Sequence[int]):
        return lambda _: [list(answer) for answer in answers]

    found = measure({"ours": serve([1, 2], [3, 4]), "other": serve([1, 2], [3, 5])}, workload, 1)
    assert found["answers_equal_to_ours"] == {"ours": 2, "other": 1}
    speed = found["tokens_per_second"]
    assert found["ratio"].keys() == {"other"}
    assert speed.keys() == {"ours", "other"}
    with pytest.raises(ValueError, match="other gave 2 answers"):
        measure({"ours": serve([1, 2], [3, 4]), "other": serve([1, 2], [3])}, workload, 1)


def test_small_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def two(rng: random.Random, vocab_size: int) -> list[list[int]]:
        return [[rng.randrange(vocab_size) for _ in range(20)] for _ in range(2)]

    monkeypatch.setitem(WORKLOADS, "shared", ("2 prompts", 2, two))
    monkeypatch.setattr(offline, "measure_limits", lambda dtype: measure_limits(dtype, 64, 1))
    path = tmp_path / "figures.json"
    main(["--workload", "shared", "--rounds", "1", "--json", str(path)])
    assert "mini_engine without prefix cache" in capsys.readouterr().out
    figures = json.loads(path.read_text())["workloads"]["shared"]["float32"]
    assert set(figures["answers_equal_to_ours"].values()) == {2}
    assert figures["share_of_limit"].keys() == {"decode", "prefill"}
