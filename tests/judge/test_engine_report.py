"""What the judge says of a failure inside the engine, on real wrong files and real runs."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from judge import layers, schedule_table, tie_band, wire
from judge.api import Ask, CheckResult
from judge.engine_report import Output, near_tie, place_lines, token_line
from judge.exercises import find
from judge.passes import free_running
from judge.report import explain
from judge.runner import Grader, Options, learner_source
from judge.sandbox import ROOT
from tests.judge import choosing

MUTANTS = ROOT / "tests/mutants"
LAST = "def choose(logits, request_id, number):\n    best = logits == logits.max()\n"


def failure(exercise_id: str, mutant: str, check: str, seed: int = 0) -> tuple[CheckResult, str]:
    """The result of one check, and all that is said about it."""
    (exercise,) = find(exercise_id)
    source = learner_source(exercise, MUTANTS / exercise_id / mutant)
    result = Grader(exercise, source, Options(seed=seed, models=("tiny",), only=check)).run()
    (found,) = result.results
    return found, "\n".join(explain(result, found, verbose=False))


def test_a_wrong_function_is_bisected_to_layer_and_position() -> None:
    found, said = failure("kv-cache.rope", "other_single_token_untouched.py", "engine-tiny")
    assert found.status == "wrong"
    for words in (
        "request-4, output 1 (position 9), sampled in step 1: expected 178, got 39",
        "best logits, reference: 178 22.4",
        "best logits, yours:     39 ",
        "margin 0.52, tie band 0.001, so this is no near tie",
        "no output before it differs, in any request",
        "teacher-forced (the reference's tokens put in after each step): 2 of 37 outputs differ",
        "step 1 computed 1 token of it, at position 8; 8 were in the cache",
        "position 8: entry 2 of the block table [0, 1, 2], so block 2, slot 8",
        "layer 0: K differs first, at position 8: ",
    ):
        assert words in said, said
    assert found.schedules is not None
    assert found.schedules.step == 1


def test_wrong_attention_is_named_and_kept_apart_from_k_and_v() -> None:
    _, said = failure("kv-cache.attention", "sees_the_future.py", "engine-tiny")
    assert "K and V agree, the cached ones too; attention output differs first" in said
    assert "looks like: no causal mask: every query sees every key" in said


def test_an_engine_that_stops_shows_both_schedules_up_to_there() -> None:
    found, said = failure("paged-kv.block-pool", "free_drops_all_holders.py", "engine", seed=5)
    assert found.status == "error"
    assert "the engine stopped in step 8: ValueError: block 0 is not in use" in said
    assert "the schedules differ first in step " in said
    assert "stopped by the error" in said
    assert "free_drops_all_holders.py:41 in free" in said
    assert said.isascii()


def test_another_policy_shows_the_step_side_by_side() -> None:
    found, said = failure("paged-kv.block-pool", "pops_from_the_end.py", "engine-schedule")
    assert found.check.kind == "policy"
    assert found.schedules is not None
    assert found.schedules.lines[1].split() == ["step", "expected", "yours"]
    assert any(line.startswith(">!") for line in found.schedules.lines), said
    assert "the same" in said


def test_a_tie_excuses_a_token_and_the_run_goes_on_in_line(tmp_path: Path) -> None:
    result = choosing.grade(tmp_path, LAST + "    return int(best.nonzero()[-1])\n")
    assert result.status == "passed", result.results[0].lines


def test_an_error_after_an_excused_token_is_found_teacher_forced(tmp_path: Path) -> None:
    late = "    if number == 4 and request_id == 'request-2':\n        return 7\n"
    result = choosing.grade(tmp_path, LAST + late + "    return int(best.nonzero()[-1])\n")
    said = "\n".join(result.results[0].lines)
    assert result.status == "wrong"
    assert "free-running, the tokens are the reference's but for near ties" in said
    assert "request-2, output 4 (position " in said
    assert "got 7" in said
    assert "1 of 24 outputs differ" in said


def test_a_token_beside_a_tie_is_not_excused(tmp_path: Path) -> None:
    code = "def choose(logits, request_id, number):\n    return int(logits.topk(3).indices[2])\n"
    result = choosing.grade(tmp_path, code)
    said = "\n".join(result.results[0].lines)
    assert result.status == "wrong"
    assert "no output before it differs" in said
    assert "24 of 24 outputs differ" in said


def test_tokens_put_in_later_never_excuse_an_earlier_pass(tmp_path: Path) -> None:
    """Whoever answers rightly in the second pass only has failed in the first."""
    code = (
        "seen = []\n"
        "def choose(logits, request_id, number):\n"
        "    seen.append(request_id)\n"
        "    lowest = int((logits == logits.max()).nonzero()[0])\n"
        "    return lowest if len(seen) > 24 else 7\n"
    )
    result = choosing.grade(tmp_path, code)
    assert result.status == "wrong"
    assert "all 24 outputs agree" in "\n".join(result.results[0].lines)


def test_a_second_pass_that_stops_is_a_failure(tmp_path: Path) -> None:
    code = LAST + (
        "    if number and best[:256].any() and logits[0] and CALLS.append(1) is None:\n"
        "        assert len(CALLS) <= 20, 'too many'\n"
        "    return int(best.nonzero()[-1])\n"
        "CALLS = []\n"
    )
    result = choosing.grade(tmp_path, code)
    assert result.status == "error"
    assert "with the reference's tokens put in, your engine stopped: AssertionError: too many" in (
        "\n".join(result.results[0].lines)
    )


def test_what_is_no_int_is_no_token() -> None:
    expected = {"outputs": {"A": [[1, 2], "length"]}, "trace": []}
    for have in ([True, 2], [1, 2.0], [1, None], [1]):
        found = free_running(expected, {"outputs": {"A": [have, "length"]}}, 1e-3)
        assert len(found.wrong) == 1, have
    assert free_running(expected, {"outputs": {"A": [[1, 2], "length"]}}, 1e-3).clean


def test_only_tokens_inside_the_band_are_near_ties() -> None:
    top = [[7, 9, 3], [3.0, 2.9999, 1.0]]
    assert near_tie(top, 9, 1e-3)
    assert not near_tie(top, 3, 1e-3)
    assert not near_tie(top, 8, 1e-3)
    assert not near_tie(top, None, 1e-3)


def test_the_band_is_twenty_times_the_noise_and_never_below_the_floor() -> None:
    assert tie_band.band(0.0) == tie_band.FLOOR
    assert tie_band.band(0.01) == pytest.approx(0.2)


def test_logits_are_compared_by_token_and_nan_is_far_away() -> None:
    ours = [[1, 2, 3], [5.0, 4.0, 3.0]]
    assert tie_band.apart(ours, [[2, 1, 3], [4.0, 5.0, 3.0]]) == 0.0
    assert tie_band.apart(ours, [[1, 2, 4], [5.0, 4.5, 3.5]]) == pytest.approx(0.5)
    assert tie_band.apart(ours, [[8, 9, 7], [5.0, 4.9, 4.8]]) == pytest.approx(2.0)
    assert tie_band.apart(ours, [[1, 2, 3], [math.nan, 4.0, 3.0]]) == math.inf


def test_the_noise_is_measured_over_other_batches_chunks_and_caches() -> None:
    payload = {
        "requests": [{"prompt": [1] * 9, "max_tokens": 3, "step": 0},
                     {"prompt": [2], "max_tokens": 2, "step": 0}],
        "options": {"max_num_batched_tokens": 4},
    }  # fmt: skip
    others = list(tie_band.variants(payload))
    assert [other["options"]["max_num_batched_tokens"] for other in others] == [12, 4, 1, 4]
    assert others[1]["options"]["enable_prefix_caching"] is False
    assert [request["step"] for request in others[3]["requests"]] == [0, 7]
    payload["options"]["enable_chunked_prefill"] = False
    budgets = [other["options"]["max_num_batched_tokens"] for other in tie_band.variants(payload)]
    assert min(budgets) == 4  # a smaller one would be refused


def test_the_noise_of_a_real_model_is_measured_once_and_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINI_ENGINE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    payload = {
        "model": str(tmp_path),
        "requests": [{"id": "a", "prompt": [1], "max_tokens": 1, "step": 0}],
        "options": {"max_num_batched_tokens": 4},
    }
    expected = {"outputs": {"a": [[5], "length"]}, "tops": {"a": [[[5, 6, 7], [3.0, 2.0, 1.0]]]}}
    runs = []

    def noisy(other: object) -> object:
        runs.append(other)
        return {"tops": {"a": [[[5, 6, 7], [3.0, 2.0, 1.0 + 2**-10]]]}}

    ask = Ask(theirs=noisy, ours=noisy)
    for _ in range(2):
        assert tie_band.tie_band(payload, expected, ask) == pytest.approx(20 * 2**-10)
        assert len(runs) == 4
    assert all(run["force"] == {"a": [5]} for run in runs)
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    tie_band.tie_band(payload, expected, ask)
    assert len(runs) == 8
    (tmp_path / "cache/tie-bands.json").write_text("{", encoding="utf-8")
    tie_band.tie_band(payload, expected, ask)
    assert len(runs) == 12


def test_other_shapes_and_dtypes_of_a_layer_get_their_own_sentence() -> None:
    def layers_of(form: str) -> dict[str, object]:
        rows = np.zeros((1, 2, 4))
        return wire.copy(
            {
                "rows": dict.fromkeys(layers.KINDS, rows),
                "seen": dict.fromkeys(layers.KINDS, rows[..., 0] == 0),
                "forms": {"attention output": form},
            }
        )

    want, have = layers_of("float32, [4, 16] per token, on cpu"), layers_of("float64, ...")
    lines = layers.compared(want, have)
    assert lines[0].startswith("the attention output of the layers is float64")
    assert "agree in all 1 layers" in lines[1]
    rows = np.zeros((1, 2, 4))
    rows[0, 1] = np.nan
    have["rows"]["V"] = wire.copy(rows)
    assert (
        "layer 0: K agrees, V differs first, at position 1: it is NaN"
        in (layers.compared(want, have)[1])
    )
    with pytest.raises(ValueError, match="a record of 3 dimensions"):
        layers.compared(want, {**have, "rows": dict.fromkeys(layers.KINDS, 7)})


def record(step: int, **fields: object) -> dict[str, object]:
    blank = {"scheduled": {}, "computed": {}, "cached": {}, "preempted": [], "finished": {}}
    return {"step": step, "free_blocks": 4, **blank, **fields}


def test_long_steps_are_wrapped_and_short_ids_are_kept() -> None:
    many = {f"request-{n}": 1 for n in range(12)}
    trace = [record(0, scheduled=many, computed=dict.fromkeys(many, 100))]
    other = [record(0, scheduled={"A": 2}, computed={"A": 0}, preempted=["B"])]
    lines = schedule_table.schedule_table(trace, other, 0)
    assert max(map(len, lines)) < 100
    assert "A 0+2, B preempted; free 4" in "\n".join(lines)
    assert schedule_table.schedule_table([], [], 0) == ()


def test_cached_computed_block_and_slot_are_told_for_both_sides() -> None:
    def trace(hit: int, table: list[int]) -> list[dict[str, object]]:
        ours = {"block_tables": {"A": table}, "resumed": [], "sampled": {}}
        return [
            record(2, preempted=["A"], **{**ours, "block_tables": {}}),
            record(4, scheduled={"A": 9 - hit, "B": 1}, computed={"A": hit, "B": 3},
                   cached={"A": hit}, **{**ours, "resumed": ["A"], "sampled": {"A": 5}}),
        ]  # fmt: skip

    payload = {"options": {"block_size": 4}, "requests": [{"id": "A", "prompt": [1] * 9}]}
    wrong = Output("A", 0, 4, 5, 6)
    assert token_line(payload, wrong, str).endswith("expected 5, got 6")
    lines = place_lines(payload, trace(4, [0, 7, 3]), trace(8, [0, 7, 2]), wrong)
    assert lines == [
        "it was preempted in step 2 and resumed in step 4 with computed=4",
        "  yours: it was preempted in step 2 and resumed in step 4 with computed=8",
        "step 4 computed 5 tokens of it, positions 4 to 8; 4 were in the cache, 4 of them from a "
        "prefix hit; 1 other request ran beside it",
        "  yours: step 4 computed 1 token of it, at position 8; 8 were in the cache, 8 of them "
        "from a prefix hit; 1 other request ran beside it",
        "the row sampled is position 8: entry 2 of the block table [0, 7, 3], so block 3, slot 12",
        "  yours: the row sampled is position 8: entry 2 of the block table [0, 7, 2], so block "
        "2, slot 8",
    ]
    assert place_lines(payload, trace(4, [0, 7, 3]), [], wrong)[1] == "  yours: never"
