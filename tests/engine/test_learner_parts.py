"""A learner's parts inside the engine: one table places them, and no file blocks another."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from judge.exercises import EXERCISES
from mini_engine import LLMEngine, SamplingParams
from mini_engine.compute.adapters import ContiguousAttention, SingleRequestAttention
from mini_engine.compute.random_model import TINY_LLAMA, random_model
from mini_engine.compute.rows import logits_rows
from mini_engine.compute.slots import slot_mapping
from mini_engine.control.request import Request
from mini_engine.interfaces import Chunk
from mini_engine.learner_parts import LEARNER_PARTS, engine_parts, placed, use_folder, written_parts
from mini_engine.parts import EngineParts

ROOT = Path(__file__).resolve().parents[2]
ALTERNATIVES = ROOT / "tests/alternatives"
MODULES = ("kv_cache", "paged_kv", "life", "batching", "scheduler", "prefix_cache", "sampling")


@pytest.fixture
def folder(tmp_path: Path):
    """A practice folder of stubs; what it brings into this process is taken out again."""
    path = tmp_path / "my practice"
    shutil.copytree(ROOT / "practice", path, ignore=shutil.ignore_patterns("__pycache__"))
    before = list(sys.path)
    yield path
    sys.path[:] = before
    for name in MODULES:
        sys.modules.pop(name, None)


def solve_pool(folder: Path) -> None:
    shutil.copy(ALTERNATIVES / "paged-kv.block-pool/list_and_counts.py", folder / "paged_kv.py")


def test_the_table_and_the_exercises_agree() -> None:
    rows = {(row.file, row.symbol, row.slot) for row in LEARNER_PARTS if row.slot != "rope"}
    assert rows == {(e.file, e.symbols[0], e.slot) for e in EXERCISES if e.slot is not None}
    symbols = {(e.file, symbol) for e in EXERCISES for symbol in e.symbols}
    assert {(row.file, row.symbol) for row in LEARNER_PARTS} <= symbols
    assert EngineParts(**{row.slot: row.symbol for row in LEARNER_PARTS})


def test_the_later_exercise_wins_a_slot() -> None:
    (attention,) = [row for row in placed(LEARNER_PARTS) if row.slot == "attention"]
    assert attention.symbol == "varlen_attention"
    both = {"attention_over_contiguous": min, "paged_attention": max}
    assert isinstance(engine_parts(both).attention(None, None), SingleRequestAttention)  # type: ignore[operator]
    only = {"attention_over_contiguous": min, "no_part": max}
    assert isinstance(engine_parts(only).attention(None, None), ContiguousAttention)  # type: ignore[operator]


def test_the_functions_of_a_batch_are_used_together_until_the_batch_is_the_learners() -> None:
    rows = [row for row in LEARNER_PARTS if row.slot == "build_batch"]
    assert [row.symbol for row in placed(rows)] == ["build_batch"]
    assert [row.symbol for row in placed(rows[:2])] == ["slot_mapping", "logits_rows"]
    called = []

    def slots(table, start, num_tokens, block_size):
        called.append("slot_mapping")
        return slot_mapping(table, start, num_tokens, block_size)

    def rows_of(starts, seq_lens, known):
        called.append("logits_rows")
        return logits_rows(starts, seq_lens, known)

    request = Request("a", [1, 2, 3], block_table=[1, 0])
    parts = engine_parts({"slot_mapping": slots, "logits_rows": rows_of})
    batch = parts.build_batch([Chunk(request, 0, 3, True)], 2)  # type: ignore[operator]
    assert sorted(called) == ["logits_rows", "slot_mapping"]
    assert (batch.slot_mapping.tolist(), batch.logits_rows.tolist()) == ([2, 3, 0], [2])


def test_penalties_stand_on_top_of_either_sampler() -> None:
    from mini_engine.compute.sampler import Sampler
    from mini_engine.compute.sampler_adapters import DrawingSampler, PenalizingSampler

    kept = [row.symbol for row in placed(LEARNER_PARTS) if row.slot == "sampler"]
    assert kept == ["sample", "apply_penalties"]
    alone = engine_parts({"apply_penalties": max}).resolve("sampler")()
    assert isinstance(alone, PenalizingSampler)
    assert isinstance(alone.sampler, Sampler)
    both = engine_parts({"filter_logits": min, "sample": min, "apply_penalties": max})
    assert isinstance(both.resolve("sampler")().sampler, DrawingSampler)
    assert engine_parts({"token_logprobs": min}).resolve("token_logprobs") is min


def test_stubs_are_the_references(folder: Path) -> None:
    parts, lines = use_folder(folder)
    assert parts == EngineParts()
    assert "reference: BlockPool: not started" in lines
    assert len(lines) == len(LEARNER_PARTS)


def test_a_written_part_runs_inside_the_engine(folder: Path) -> None:
    solve_pool(folder)
    parts, lines = use_folder(folder)
    assert "yours: BlockPool of paged_kv.py, as block_pool" in lines
    options = {"device": "cpu", "num_blocks": 40, "block_size": 4, "max_model_len": 64}
    answers = []
    for chosen in (EngineParts(), parts):
        with LLMEngine(random_model(TINY_LLAMA, seed=1), parts=chosen, **options) as engine:
            answers.append(engine.generate([[1, 2, 3]], SamplingParams(9))[0].token_ids)
            place = type(engine.cache.pool).__module__
    assert answers[0] == answers[1]
    assert place == "paged_kv"


def test_a_scheduler_counts_once_all_of_its_methods_are_written(folder: Path) -> None:
    shutil.copy(ALTERNATIVES / "scheduler.preempt/without_abort.py", folder / "scheduler.py")
    assert "Scheduler: not finished (abort, roll_back)" in written_parts(folder)[1]
    shutil.copy(ALTERNATIVES / "scheduler/one_table.py", folder / "scheduler.py")
    parts, lines = use_folder(folder)
    assert "yours: Scheduler of scheduler.py, as scheduler" in lines
    options = {"device": "cpu", "num_blocks": 6, "block_size": 4, "max_model_len": 24}
    answers = []
    for chosen in (EngineParts(), parts):
        with LLMEngine(random_model(TINY_LLAMA, seed=1), parts=chosen, debug=True, **options) as e:
            outputs = e.generate([[1, 2, 3], [4] * 7], SamplingParams(9))
            answers.append([output.token_ids for output in outputs])
            place = type(e.scheduler).__module__
    assert answers[0] == answers[1]
    assert place == "scheduler"


def test_a_broken_file_blocks_no_other(folder: Path) -> None:
    solve_pool(folder)
    (folder / "kv_cache.py").write_text("def apply_rope(:\n")
    _, lines = use_folder(folder)
    assert any("kv_cache.py is no valid Python" in line for line in lines)
    assert any(line.startswith("yours: BlockPool") for line in lines)
    (folder / "kv_cache.py").write_text("def apply_rope(): pass\n1 / 0\n")
    _, lines = use_folder(folder)
    assert "reference: kv_cache.py can't be run (ZeroDivisionError: division by zero)" in lines


def test_looking_at_what_is_written_runs_nothing(folder: Path) -> None:
    (folder / "kv_cache.py").write_text("def apply_rope(x): return x\nraise SystemExit\n")
    (folder / "paged_kv.py").unlink()
    written, others = written_parts(folder)
    assert [row.symbol for row in written] == ["apply_rope"]
    assert "BlockPool: there is no paged_kv.py" in others
    with pytest.raises(FileNotFoundError, match="work/practice"):
        written_parts(folder / "nowhere")


def test_a_rope_of_ones_own_is_what_the_loaded_model_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    from mini_engine import assemble

    seen = {}
    model = random_model(TINY_LLAMA, seed=1)
    monkeypatch.setattr(assemble, "find_model", lambda name: Path(name))
    monkeypatch.setattr(assemble, "load_config", lambda folder: TINY_LLAMA)
    monkeypatch.setattr(assemble, "load_weights", lambda *names: {})
    monkeypatch.setattr(assemble, "load_tokenizer", lambda folder: None)
    monkeypatch.setattr(
        assemble.Model, "from_tensors", lambda *given: seen.update(rope=given[-1]) or model
    )
    mine = lambda x, cos, sin: x  # noqa: E731
    options = {"device": "cpu", "num_blocks": 8, "block_size": 4, "max_model_len": 32}
    with LLMEngine("some folder", parts=EngineParts(rope=mine), **options):
        assert seen["rope"] is mine


def test_the_command_line_says_whose_parts_it_uses(folder: Path) -> None:
    solve_pool(folder)
    command = [sys.executable, "-m", "mini_engine", "hello", "--parts"]
    found = subprocess.run(
        [*command, str(folder), "--model", str(folder)], cwd=ROOT, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    assert found.returncode == 2, "the folder holds no model"
    assert "yours: BlockPool of paged_kv.py, as block_pool" in found.stderr
    found = subprocess.run(
        [*command, "nowhere"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert found.returncode == 2
    assert "there is no folder nowhere" in found.stderr
