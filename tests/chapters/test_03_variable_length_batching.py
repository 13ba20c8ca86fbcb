"""Chapter 03: the numbers in its prose are those of the engine, of its cells, or of arithmetic."""

from __future__ import annotations

import re
from ast import literal_eval
from itertools import pairwise

import pytest

from judge.exercises import find
from mini_engine.compute.rows import logits_rows
from mini_engine.compute.slots import slot_mapping
from tests.chapters.chapter import Chapter


@pytest.fixture(scope="module")
def chapter() -> Chapter:
    return Chapter("03_variable_length_batching.ipynb")


@pytest.fixture(scope="module")
def mixed(chapter: Chapter) -> dict[str, list[int]]:
    """The seven tensors of the printed step."""
    lines = chapter.output_of("mixed = batches[2]").splitlines()
    pairs = [line.split(" ", 1) for line in lines if re.match(r"[a-z_]+ \[", line)]
    return {name: literal_eval(numbers) for name, numbers in pairs}


def busy_steps(chapter: Chapter) -> list[list[int]]:
    """The chunks of each step, out of the table of the rectangles."""
    shown = chapter.output_of("rows, real, padded = ")
    return [literal_eval(f"[{chunks}]") for chunks in re.findall(r"^\d+ ([\d, ]+?) \d+ \d+ \d+%",
                                                                 shown, re.MULTILINE)]  # fmt: skip


def test_the_waste_of_a_rectangle(chapter: Chapter) -> None:
    steps, shown = busy_steps(chapter), chapter.output_of("rows, real, padded = ")
    assert len(steps) > 5
    for step, chunks in enumerate(steps):
        cells = len(chunks) * max(chunks)
        waste = f"{1 - sum(chunks) / cells:.0%}"
        chunk_list = ", ".join(map(str, chunks))
        assert f"{step} {chunk_list} {sum(chunks)} {cells} {waste}" in shown
        assert (waste == "0%") == (len(set(chunks)) == 1)
    real, padded = sum(map(sum, steps)), sum(len(c) * max(c) for c in steps)
    assert f"together {padded} for {real} tokens" in shown
    assert padded > 2 * real
    assert f"computes chunks of {steps[3]}" in chapter.output_of("busy, _ = serve")
    assert len(steps[3]) * max(steps[3]) > 3 * sum(steps[3]), "several times as large"
    ratio = len(steps[3]) * max(steps[3]) / sum(steps[3])
    assert f"{ratio:.2f} times the rows but takes less than 3 times as long" in chapter.prose
    flat, rectangle = map(int, re.findall(r"(\d+) ms", chapter.output_of("flat, rectangle =")))
    assert rectangle < 3 * flat


def test_the_printed_batch_is_what_the_prose_says(
    chapter: Chapter, mixed: dict[str, list[int]]
) -> None:
    assert len(mixed) == 7
    assert "Two decodes, a whole prompt of 4, and the first 6 tokens of a prompt of 18" in (
        chapter.prose
    )
    starts, lens = mixed["query_starts"], mixed["seq_lens"]
    counts = [b - a for a, b in pairwise(starts)]
    assert counts == [1, 1, 4, 6]
    assert f"chunks of step 2: {counts}" in chapter.output_of("mixed = batches[2]")
    assert (starts[1], mixed["positions"][1], lens[1]) == (1, 5, 6)
    assert mixed["logits_rows"] == logits_rows(starts, lens, [7, 6, 4, 18]) == [0, 1, 5]
    slots = []
    for table, length, count in zip(mixed["block_tables"], lens, counts, strict=True):
        slots += slot_mapping(table, length - count, count, 4)  # type: ignore[arg-type]
    assert slots == mixed["slot_mapping"]
    assert "The rule counts tokens" in chapter.prose


def test_the_table_lists_the_seven_tensors(chapter: Chapter, mixed: dict[str, list[int]]) -> None:
    assert re.findall(r"\| `(\w+)` \|", chapter.section("The flat batch")) == list(mixed)


def test_the_picture_shows_a_table_out_of_order(chapter: Chapter) -> None:
    shown = chapter.output_of("def pieces(outputs)")
    blocks = re.search(r"^ *D \d+ \d+ ([\d ]+) none", shown, re.MULTILINE)
    assert blocks
    table = [int(block) for block in blocks.group(1).split()]
    other = re.search(r"^ *C \d+ \d+ ([\d ]+) \d+", shown, re.MULTILINE)
    assert other
    between = range(table[1] + 1, table[2])
    assert [int(b) for b in other.group(1).split()[1:2]] == list(between)
    assert "its third block is *not* behind its second one, since C took" in chapter.prose


def test_which_rows_are_sampled(chapter: Chapter, mixed: dict[str, list[int]]) -> None:
    shown = chapter.output_of("ids, sampled = ")
    assert f"samples from the rows {mixed['logits_rows']}" in shown
    guess, known = re.findall(r"predicts ('.*?'), but the prompt goes on with ('.*?')", shown)[0]
    assert guess != known
    sampled = sum(len(chunks) for chunks in busy_steps(chapter)) - 2  # two unfinished chunks
    assert f"{sampled} of {sum(map(sum, busy_steps(chapter)))} rows sampled" in shown
    assert "a vocabulary of 49,152 tokens" in chapter.prose


def test_a_row_sees_its_own_request_up_to_itself(
    chapter: Chapter, mixed: dict[str, list[int]]
) -> None:
    shown = chapter.output_of("seen[f")
    lines = [line for line in shown.splitlines() if re.match(r"\d+ 0 to \d+$", line)]
    assert lines == [f"{row} 0 to {position}" for row, position in enumerate(mixed["positions"])]
    assert "row j of them stands at position L - n + j" in chapter.prose


def test_alone_and_together_give_the_same_tokens(chapter: Chapter) -> None:
    lines = chapter.output_of("scores_alone = ").splitlines()
    assert [line.split()[0] for line in lines if line] == ["True"] * 4


def test_a_batch_of_decodes_counts_by_one(chapter: Chapter) -> None:
    shown = chapter.output_of('for name in ("positions", "query_starts"')
    starts = literal_eval(shown.split("query_starts ")[1].splitlines()[0])
    assert starts == list(range(len(starts)))
    assert literal_eval(shown.split("logits_rows ")[1].splitlines()[0]) == starts[:-1]


def test_noise_is_far_below_the_leads(chapter: Chapter) -> None:
    assert "= 0.0" in chapter.output_of("big, one = ")
    assert "= 1.0" in chapter.output_of("big, one = ")
    shown = chapter.output_of("noise = max(")
    noise = float(shown.split("differ by at most ")[1].split()[0])
    lead = float(shown.split("smallest lead of a best score: ")[1].split()[0])
    assert 0 < 1000 * noise < lead
    assert "more than a thousand times smaller than the smallest lead" in chapter.prose
    steps = literal_eval(shown.split("steps of its rounding: ")[1].split(" ...")[0])
    single = sum(step == 1 for step in steps)
    assert 0 not in steps
    assert steps[-1] > 1, "no more single steps follow"
    assert f"{single} of our {shown.split()[0]} leads are a single step" in chapter.prose
    groups = re.findall(r"\[[\d, ]+\]", chapter.output_of("weight = model.layers[0]"))
    assert len(groups) > 1
    assert "sums of 1,536 products" in "".join(
        "".join(cell["source"]) for cell in chapter.cells if cell["cell_type"] == "code"
    )


def test_breaking_it(chapter: Chapter) -> None:
    lines = [line for line in chapter.output_of("mistakes = {").splitlines() if line]
    texts = [line.split(":", 1)[1] for line in lines]
    assert len(texts) == 4
    assert all(text != texts[0] for text in texts[1:]), "each mistake changes the text"
    assert "rows of logits for" in chapter.output_of("every_chunk = ")
    assert "No error in three of four cases" in chapter.prose


def test_exercises_are_shown_not_started(chapter: Chapter) -> None:
    for exercise in find("ch03"):
        shown = chapter.output_of(f'grade("{exercise.id}")')
        assert "not started yet: open practice/batching.py" in shown
        assert "PASS" not in shown


def test_quiz(chapter: Chapter) -> None:
    assert (4 * 61, 4 * 61 - 64) == (244, 180)
    assert "4 * 61 = 244 cells, of which 180 are padding" in chapter.prose
    starts, lens = [0, 3, 4, 9], [3, 20, 12]
    positions = [n - (end - row) for start, end, n in zip(starts, starts[1:], lens, strict=False)
                 for row in range(start, end)]  # fmt: skip
    assert positions[2:5] == [2, 19, 7]
    for words in ("position 2", "position 19", "position 11: position 7"):
        assert words in chapter.section("Quiz")
    assert logits_rows(starts, lens, [3, 20, 40]) == [2, 3]
    assert "`[2, 3]`" in chapter.section("Quiz")
