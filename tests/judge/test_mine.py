"""`--mine`: the parts that passed make an engine, which is compared with the reference's tokens."""

from __future__ import annotations

import argparse
import io
import re
import shutil
from pathlib import Path

import pytest

from judge.cli import parser
from judge.commands import mine as command
from judge.doctor import missing_models
from judge.exercises import find
from judge.practice import Folder
from judge.progress import Progress
from judge.report import Reporter
from judge.sandbox import ROOT
from tests.judge.conftest import solve

SOLVED = {
    "kv-cache.rope": "rotate_half.py",
    "kv-cache.attention": "sdpa.py",
    "paged-kv.block-pool": "linked_list.py",
    "paged-kv.slot-mapping": "block_by_block.py",
    "paged-kv.paged-attention": "block_by_block.py",
    "graphs.static-buffers": "row_by_row.py",
}


class Space:
    def __init__(self, root: Path) -> None:
        self.folder = Folder(root / "work" / "practice", own=True)
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "practice", self.folder.path, ignore=skip)

    def solve(self, *ids: str) -> None:
        for exercise_id in ids:
            solve(self.folder.path, exercise_id, SOLVED[exercise_id])

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.folder.path / name
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    def passed(self, *ids: str) -> Progress:
        """A record that says so of the code as it is now."""
        progress = Progress(self.folder)
        for exercise_id in ids:
            (exercise,) = find(exercise_id)
            entry = {"status": "passed", "hash": progress.code(exercise)}
            progress.entries[exercise_id] = entry
        return progress

    def run(self, progress: Progress, model: str = "tiny") -> tuple[int, str]:
        said = io.StringIO()
        args: argparse.Namespace = parser().parse_args(["--mine", "--model", model])
        return command.mine(args, progress, Reporter(said)), said.getvalue()


@pytest.fixture
def space(tmp_path: Path) -> Space:
    return Space(tmp_path / "été")


def test_nothing_passed_is_not_started(space: Space) -> None:
    space.solve("paged-kv.block-pool")
    code, said = space.run(Progress(space.folder))
    assert code == 3
    assert "no part of yours has passed yet" in said


def test_all_parts_that_passed_and_the_reference_for_the_rest(space: Space) -> None:
    space.solve(*SOLVED)
    code, said = space.run(space.passed(*SOLVED))
    assert code == 0, said
    assert "yours      block_pool   paged-kv.block-pool (passed)" in said
    assert "yours      attention    paged-kv.paged-attention (passed)" in said
    assert "yours      graph_runner graphs.static-buffers (passed)" in said
    assert "kv-cache.attention (passed; a later part of yours fills the same slot)" in said
    assert "with 5 parts of yours: 3 of 3 answers are the reference's, token by token" in said


def test_code_edited_since_it_passed_is_left_out(space: Space) -> None:
    space.solve("paged-kv.block-pool", "paged-kv.slot-mapping")
    progress = space.passed("paged-kv.block-pool", "paged-kv.slot-mapping")
    (pool,) = find("paged-kv.block-pool")
    progress.entries[pool.id]["hash"] = "of other code"
    code, said = space.run(progress)
    assert code == 0, said
    assert "reference  block_pool   paged-kv.block-pool (edited since it passed)" in said
    assert "with 1 part of yours" in said


def test_a_wrong_draw_is_caught_by_the_prompt_that_is_not_greedy(space: Space) -> None:
    solve(space.folder.path, "sampling.sample", "as_in_the_course.py")
    space.edit("sampling.py", "kept + noise", "kept - noise")
    code, said = space.run(space.passed("sampling.sample"))
    assert code == 1
    assert "2 of 3 answers are the reference's" in said
    *_, last = said.split("\n> ")
    assert "(temperature 0.8, top_p 0.95, presence_penalty 0.5, seed 7)" in last
    assert "FAIL  it differs from the reference's answer" in last


def test_a_wrong_part_is_caught_with_the_first_token(space: Space) -> None:
    space.solve("kv-cache.rope")
    space.edit("kv_cache.py", "def apply_rope(", "def apply_rope(x, cos, sin):\n    return -x\n\n\n"
               "def no_rope(")  # fmt: skip
    code, said = space.run(space.passed("kv-cache.rope"))
    assert code == 1
    assert "FAIL  it differs from the reference's answer" in said
    assert re.search(r"  output \d: expected \d+, got \d+\n  best logits, reference:", said)


def test_an_engine_that_stops_or_dies_is_reported(space: Space) -> None:
    space.solve("paged-kv.block-pool")
    original = (space.folder.path / "paged_kv.py").read_text("utf-8")
    for words, code in (
        ("ZeroDivisionError", "    1 / 0\n"),
        ("exit code 0", "    import os\n    os._exit(0)\n"),
    ):
        text = original.replace("# --- paged-kv.slot", f"class BlockPool:\n  def __init__(*a):\n"
                                f"{code}\n# --- paged-kv.slot", 1)  # fmt: skip
        (space.folder.path / "paged_kv.py").write_text(text, encoding="utf-8")
        status, said = space.run(space.passed("paged-kv.block-pool"))
        assert status == 1
        assert words in said, said


def test_no_answer_of_an_impossible_form_passes() -> None:
    want = {"tokens": [4, 5], "tops": [[[4, 1], [2.0, 1.0]], [[5, 1], [2.0, 1.99999]]]}
    for got in (None, 7, {}, {"tokens": "45"}, {"tokens": []}, {"tokens": [4]}):
        assert command.difference(want, got, "tiny")[0], got
    assert command.difference(want, {"tokens": [4, 5]}, "tiny") == ([], "")
    lines, tie = command.difference(want, {"tokens": [4, 1]}, "tiny")
    assert (lines, tie) == ([], "equal up to output 1, where two tokens are a near tie")


@pytest.mark.slow
@pytest.mark.skipif("smollm2" in missing_models(), reason="SmolLM2 is not on this machine")
def test_on_smollm2_it_answers_in_words(space: Space) -> None:
    space.solve("paged-kv.block-pool", "paged-kv.paged-attention")
    code, said = space.run(
        space.passed("paged-kv.block-pool", "paged-kv.paged-attention"), "smollm2"
    )
    assert code == 0, said
    assert "> What is a KV cache?" in said
    assert "chat with it: python -m mini_engine --parts " in said


def test_without_the_model_it_says_so(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "missing_models", lambda real: {"smollm2": "SmolLM2 is not here"})
    space.solve("paged-kv.block-pool")
    code, said = space.run(space.passed("paged-kv.block-pool"), "smollm2")
    assert code == 4
    assert "not run: SmolLM2 is not here" in said
