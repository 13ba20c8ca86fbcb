"""`--model FOLDER`: another model in SmolLM2's place; clear errors before anything is graded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judge import models
from judge.api import CheckResult
from judge.exercises import find
from judge.runner import Grader, Options, learner_source
from judge.sandbox import ROOT
from tests.judge.conftest import Checkout
from tests.judge.test_mine import Space

VOCAB = 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random Qwen3 model as transformers saves it, without a tokenizer."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(5)
    config = Qwen3Config(
        vocab_size=VOCAB, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=16, max_position_embeddings=256,
        tie_word_embeddings=False, initializer_range=0.3,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("models") / "tiny-qwen3"
    Qwen3ForCausalLM(config).save_pretrained(path)
    return path


def graded(exercise_id: str, file: Path, check: str, folder: Path) -> CheckResult:
    (exercise,) = find(exercise_id)
    options = Options(seed=2, only=check, real=models.real_model(str(folder)))
    (found,) = Grader(exercise, learner_source(exercise, file), options).run().results
    return found


@pytest.mark.parametrize(
    ("exercise_id", "alternative", "check"),
    [
        ("kv-cache.rope", "rotate_half.py", "engine-smollm2"),
        ("kv-cache.generate", "preallocated.py", "smollm2"),
        ("paged-kv.block-pool", "linked_list.py", "engine-smollm2"),
    ],
)
def test_right_code_passes_on_it(
    exercise_id: str, alternative: str, check: str, folder: Path
) -> None:
    file = ROOT / "tests/alternatives" / exercise_id / alternative
    found = graded(exercise_id, file, check, folder)
    assert found.status == "passed", found.lines


def test_wrong_code_fails_on_it_and_the_model_is_named(folder: Path) -> None:
    file = ROOT / "tests/mutants/kv-cache.rope/other_single_token_untouched.py"
    found = graded("kv-cache.rope", file, "engine-smollm2", folder)
    assert found.status == "wrong"
    assert found.case is not None
    assert found.case.label.startswith("tiny-qwen3, ")
    assert all(t < VOCAB for r in found.case.payload["requests"] for t in r["prompt"])


def test_the_learners_whole_engine_runs_on_it(folder: Path, tmp_path: Path) -> None:
    space = Space(tmp_path)
    space.solve("kv-cache.rope", "paged-kv.slot-mapping")
    code, said = space.run(space.passed("kv-cache.rope", "paged-kv.slot-mapping"), str(folder))
    assert code == 0, said
    assert "3 of 3 answers are the reference's" in said


def spoiled(folder: Path, copy: Path, **settings: Any) -> Path:
    config = json.loads((folder / "config.json").read_text("utf-8"))
    copy.mkdir()
    (copy / "config.json").write_text(json.dumps({**config, **settings}), encoding="utf-8")
    return copy


def test_what_cannot_be_served_is_refused_with_the_reason(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    other = spoiled(folder, tmp_path / "other", architectures=["GPT2LMHeadModel"])
    short = spoiled(folder, tmp_path / "short", max_position_embeddings=128)
    bare = spoiled(folder, tmp_path / "bare")
    (short / "model.safetensors").write_bytes(b"")
    for path, words in (
        (tmp_path / "nowhere", "is no folder; give tiny, smollm2 or the folder"),
        (other / "config.json", "is a file; give tiny, smollm2 or the folder"),
        (tmp_path / "empty", r"there is no .*config\.json"),
        (other, "GPT2LMHeadModel; supported: LlamaForCausalLM, Qwen3ForCausalLM"),
        (bare, r"lacks its weights: no model\.safetensors"),
        (short, "128 positions, the judge needs 256"),
    ):
        with pytest.raises(ValueError, match=words):
            models.real_model(str(path))


def test_on_the_command_line_it_is_wrong_usage_before_any_grading(checkout: Checkout) -> None:
    found = checkout.run("paged-kv.block-pool", "--model", "nowhere")
    assert found.returncode == 2
    assert found.stdout == ""
    assert "judge: the model 'nowhere' is no folder" in found.stderr
    assert "tiny|smollm2|FOLDER" in checkout.run("--help").stdout


def test_a_check_passed_on_it_has_not_passed_on_smollm2(checkout: Checkout, folder: Path) -> None:
    work = checkout.make_work()
    mapping = ROOT / "tests/alternatives/paged-kv.slot-mapping/block_by_block.py"
    (work / "paged_kv.py").write_text(mapping.read_text("utf-8"), encoding="utf-8")
    found = checkout.run("paged-kv.slot-mapping", "--model", str(folder))
    assert found.returncode == 0, found.stdout + found.stderr
    entries = json.loads((checkout.root / "work/progress.json").read_text("utf-8"))["exercises"]
    assert entries["paged-kv.slot-mapping"]["status"] == "passed"
    assert entries["paged-kv.slot-mapping"]["slow_passed"] == []
