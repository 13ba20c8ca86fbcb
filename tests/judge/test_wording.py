"""What a first reader tripped over stays mended: sentences that follow from what happened."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from judge import doctor, practice
from judge.api import Check, CheckResult, Exercise, ExerciseResult
from judge.commands import grade as grading
from judge.commands import show
from judge.exercises import EXERCISES, find, stub_lines
from judge.exercises.kv_cache_generate import token_lines
from judge.progress import Progress
from judge.report import Reporter, counts
from judge.runner import Grader, Options, learner_source
from judge.sandbox import ROOT
from judge.workers import Workers
from tests.judge.conftest import Checkout
from tests.judge.toy import CHECK, ODD, grade

METRICS = "life.latency-metrics"
CHUNKS = "life.prefill-chunks"
POLICY = replace(ODD, kind="policy")


def said(result: ExerciseResult, hints_shown: int = 0) -> str:
    stream = StringIO()
    reporter = Reporter(stream)
    for found in result.results:
        reporter.check(found)
    reporter.failure(result, hints_shown)
    reporter.summary(result)
    return stream.getvalue()


def graded(exercise_id: str, file: Path, **options: object) -> ExerciseResult:
    (exercise,) = find(exercise_id)
    chosen = Options(seed=5, models=("tiny",), **options)  # type: ignore[arg-type]
    return Grader(exercise, learner_source(exercise, file), chosen).run()


# Policy.


def test_a_part_that_is_right_hears_so_before_it_hears_what_differs(tmp_path: Path) -> None:
    text = said(grade(tmp_path, "def half(x): return x // 2 if x % 2 == 0 else 0", CHECK, POLICY))
    assert "POLICY       odd              half of odd numbers (differs, which is allowed)" in text
    right, differs = text.index("your part is right; here it differs"), text.index("expected 1")
    assert right < differs
    assert "PASS  toy.half: 1 of 2 checks passed (1 policy check differs, which is allowed)" in text


@pytest.mark.parametrize("follows", ["the reference", "the reference and vLLM"])
def test_a_policy_says_from_what_it_differs(tmp_path: Path, follows: str) -> None:
    code = "def half(x): return x // 2 if x % 2 == 0 else 0"
    policy = POLICY if follows == "the reference" else replace(POLICY, follows=follows)
    text = said(grade(tmp_path, code, CHECK, policy))
    assert f"here it differs from {follows}, which is allowed:" in text


def test_policy_is_looked_at_once_the_contract_holds(tmp_path: Path) -> None:
    result = grade(tmp_path, "def half(x): return 0", CHECK, POLICY)
    assert result.results[1].status == "not run"
    assert "policy is looked at once the contract holds" in said(result)
    assert result.first_failure is not None
    assert result.first_failure.check is not POLICY


# Torch where none is needed.

TORCH_AT_THE_TOP = "import torch\ndef half(x): return x // 2\n"


def test_torch_at_the_top_of_a_torch_free_file_is_a_note(tmp_path: Path) -> None:
    result = grade(tmp_path, TORCH_AT_THE_TOP, CHECK)
    assert result.status == "passed"
    assert len(result.notes) == 1
    pattern = r"note: toy_file\.py loads torch when it is imported: \d+\.\d s of this run; this"
    assert re.search(pattern, said(result))
    assert grade(tmp_path, "def half(x): return x // 2\n", CHECK).notes == []


def test_a_file_that_imports_the_reference_is_told_so(tmp_path: Path) -> None:
    home = grade(tmp_path, "def half(x): return x // 2\n", CHECK).exercise.reference
    result = grade(tmp_path, f"from {home} import half\n", CHECK)
    assert result.status == "passed"
    assert result.notes == [
        f"half in toy_file.py is the reference's own function, imported from {home}"
    ]


def test_torch_where_it_is_needed_is_no_note(tmp_path: Path) -> None:
    needy = replace(CHECK, needs=("torch",), limit_s=30.0)
    assert grade(tmp_path, TORCH_AT_THE_TOP, needy).notes == []


@pytest.mark.parametrize(
    ("name", "line"),
    [("torch.zeros", "`import torch`"), ("Tensor", "`from torch import Tensor`")],
)
def test_a_name_of_torch_that_is_not_imported(name: str, line: str, tmp_path: Path) -> None:
    result = grade(tmp_path, f"def half(x): return {name}(1)", CHECK).results[0]
    assert result.status == "error"
    assert f"begin the function with {line}" in "\n".join(result.lines)


# Words of single exercises.


def test_no_tokens_at_all_agree_with_nothing() -> None:
    made = {"model": "llama", "prompt": [1], "max_tokens": 1}
    nothing = token_lines(made, {"tokens": [7]}, {"tokens": [], "computed": []}, 0)
    assert nothing[0] == "number of tokens: expected 1, got 0 (an empty list)"
    one = token_lines(made, {"tokens": [7, 8]}, {"tokens": [7], "computed": [[1, 0]]}, 1)
    assert one[0] == "number of tokens: expected 2, got 1 (which is right)"


def test_a_list_that_is_given_away_names_the_method_that_gave_it(tmp_path: Path) -> None:
    file = ROOT / "tests/mutants/paged-kv.block-pool/gives_its_list_away.py"
    failed = graded("paged-kv.block-pool", file, only="own-lists").first_failure
    assert failed is not None
    assert "the judge changed the list r0 (free_block_ids), as a caller may" in failed.lines[-1]


def test_the_second_hint_of_the_pool_says_that_a_list_will_do() -> None:
    assert find("paged-kv.block-pool")[0].details().hints[1].endswith("(A list will do here.)")


def just_above(check: Check) -> list[str]:
    return [c.label for c in check.cases(random.Random(0)) if "6.7515" in c.label]


def test_goodput_is_tried_just_above_its_limits() -> None:
    (check,) = (c for c in find(METRICS)[0].details().checks if c.name == "goodput")
    assert just_above(check)


def test_the_doctor_says_why_a_check_is_not_run() -> None:
    stream = StringIO()
    (slots,) = find("paged-kv.slot-mapping")
    with Workers() as workers:
        assert doctor._reference_passes(slots, (), workers, Reporter(stream))
    assert "PASS  paged-kv.slot-mapping: 8 of 8 checks passed; 1 not run" in stream.getvalue()
    assert "  not run: engine-smollm2 (SmolLM2 is " in stream.getvalue()


# Hints: those of the function that failed, and an end.


@pytest.fixture
def progress(tmp_path: Path) -> Progress:
    folder = tmp_path / "work" / "practice"
    folder.mkdir(parents=True)
    (folder / "life.py").write_text("first\n", encoding="utf-8")
    return Progress(practice.Folder(folder, own=True))


def hint(progress: Progress, exercise_id: str) -> str:
    stream = StringIO()
    show.hint(find(exercise_id)[0], progress, Reporter(stream))
    return stream.getvalue()


def failing(progress: Progress, check: str) -> None:
    progress.last_failure = {"exercise": METRICS, "check": check, "seed": 1}


def test_the_hint_fits_the_function_that_failed(progress: Progress) -> None:
    assert f"{METRICS}, hint 1 of 3" in hint(progress, METRICS)
    failing(progress, "percentile")
    first = hint(progress, METRICS)
    assert "on the check percentile, hint 1 of 3" in first
    assert "50th percentile" in " ".join(first.split())
    failing(progress, "percentile")
    assert "hint 2 of 3" in hint(progress, METRICS)
    failing(progress, "goodput")
    assert "on the check goodput, hint 1 of 3" in hint(progress, METRICS)
    failing(progress, "percentile")
    assert "hint 3 of 3" in hint(progress, METRICS)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_hints_of_a_check_are_three_and_for_a_check_that_exists(exercise: Exercise) -> None:
    details = exercise.details()
    names = {check.name for check in details.checks if check.kind == "contract"}
    assert set(details.hints_for) <= names
    for hints in details.hints_for.values():
        assert len(hints) == 3
        assert "?" in hints[0]
        assert all(len(text) > 40 for text in hints)


def test_after_the_last_hint_there_is_the_solution(progress: Progress, tmp_path: Path) -> None:
    texts = [hint(progress, "life.prefill-chunks") for _ in range(4)]
    assert ["this was the last hint" in text for text in texts] == [False, False, True, True]
    assert "life.prefill-chunks --solution" in texts[2]
    wrong = grade(tmp_path, "def half(x): return x", CHECK)
    assert "hint 3 of 3" in said(wrong, 2)
    assert "all hints are shown; the reference's code" in said(wrong, 3)
    assert "of 3:" not in said(wrong, 3)


# Progress.


def test_a_verdict_on_other_code_says_so(progress: Progress) -> None:
    (chunks,) = find("life.prefill-chunks")
    result = ExerciseResult(chunks, "", 1, [CheckResult(CHECK, "wrong", lines=["half(2)"])])
    progress.record(result, progress.code(chunks))
    assert progress.status(chunks) == "wrong"
    stream = StringIO()
    (progress.folder.path / "life.py").write_text("second\n", encoding="utf-8")
    assert progress.status(chunks) == "wrong, changed since"
    show.overview(progress, Reporter(stream))
    assert "(wrong, changed since)" in stream.getvalue()
    assert "last failure: life.prefill-chunks / even (the code was changed since)" in (
        stream.getvalue()
    )


def test_all_passed_ends_with_what_is_next(progress: Progress) -> None:
    for exercise in EXERCISES:
        progress.entries[exercise.id] = {"status": "passed", "hash": progress.code(exercise)}
    stream = StringIO()
    show.overview(progress, Reporter(stream))
    assert stream.getvalue().rstrip().endswith(grading.ALL_PASSED)
    assert "--mine" in grading.ALL_PASSED
    assert "next:" not in stream.getvalue()


def test_the_list_speaks_of_parts(checkout: Checkout) -> None:
    text = checkout.run("--list").stdout
    assert "engine part: block_pool" in text
    assert "slot block_pool" not in text


def test_the_last_pass_of_all_is_closed_with_a_sentence(checkout: Checkout) -> None:
    work = checkout.make_work()
    right = ROOT / "tests/alternatives/life.prefill-chunks/ranges.py"
    (work / "life.py").write_text(right.read_text("utf-8"), encoding="utf-8")
    folder = practice.Folder(work, own=True)
    known = Progress(folder)
    entries = {
        e.id: {"status": "passed", "hash": known.code(e)} for e in EXERCISES if e.id != CHUNKS
    }
    record = {"version": 1, "exercises": entries, "last_failure": None}
    (work.parent / "progress.json").write_text(json.dumps(record), encoding="utf-8")
    found = checkout.run(CHUNKS)
    assert found.returncode == 0, found.stdout
    assert found.stdout.rstrip().endswith(grading.ALL_PASSED)


def test_a_stub_of_another_exercise_comes_with_the_way_out() -> None:
    batching, slots = find("batching.build-batch")[0], find("paged-kv.slot-mapping")[0]
    assert stub_lines(batching, "build_batch") == ["build_batch"]
    assert stub_lines(slots, "slot_mapping") == ["slot_mapping"]
    lines = stub_lines(batching, "slot_mapping")
    assert "practice/paged_kv.py" in lines[1]
    assert "mini_engine.compute.slots" in lines[1]
    stream = StringIO()
    Reporter(stream).check(CheckResult(CHECK, "not started", lines=lines))
    assert f"(slot_mapping is a stub; {lines[1]})" in stream.getvalue()


def test_counts_of_policy_are_words() -> None:
    results = [CheckResult(CHECK, "passed"), *[CheckResult(POLICY, "wrong")] * 2]
    assert counts(results) == "1 of 3 checks passed (2 policy checks differ, which is allowed)"
