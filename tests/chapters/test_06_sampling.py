"""Chapter 06: the numbers in its prose are those of its cells, of the engine, or of arithmetic."""

from __future__ import annotations

import math
import re
from ast import literal_eval

import pytest
import torch

from judge.exercises import find
from mini_engine.compute.plain_sampler import apply_penalties, filter_logits
from tests.chapters.chapter import Chapter

VOCABULARY = 49_152
MINE = [exercise for exercise in find("ch06") if exercise.topic == "sampling"]


@pytest.fixture(scope="module")
def chapter() -> Chapter:
    return Chapter("06_sampling.ipynb")


def shares(chapter: Chapter) -> dict[str, list[int]]:
    """Share -> tokens needed after the fact and after the story."""
    shown = chapter.output_of("def needed(text, share)")
    found = re.findall(r"^ *(\d+)% (\d+) (\d+)", shown, re.MULTILINE)
    return {share: [int(fact), int(story)] for share, fact, story in found}


def left(chapter: Chapter) -> dict[str, list[int]]:
    """Setting -> tokens left after the fact and after the story."""
    shown = chapter.output_of("settings = [")
    found = re.findall(r"^ *([a-z_]+ [\d.]+(?:, [a-z_]+ [\d.]+)*) (\d+) (\d+)", shown, re.MULTILINE)
    return {name: [int(fact), int(story)] for name, fact, story in found}


def test_the_tail(chapter: Chapter) -> None:
    fact, story = shares(chapter)["90"]
    assert f"the {story} best tokens have 90%" in chapter.prose
    assert f"the other {VOCABULARY - story:,} share the rest" in chapter.prose
    assert f"with a probability of {1 - 0.9**24:.0%}" in chapter.prose
    assert f"top_p .9 leaves {story} tokens of the story" in "".join(
        "".join(cell["source"]) for cell in chapter.cells
    )
    assert left(chapter)["top_p 0.9"] == [fact, story], "top-p keeps just what is needed"


def test_filters_adapt_or_do_not(chapter: Chapter) -> None:
    counts = left(chapter)
    assert len(counts) == 4
    assert counts["top_k 50"] == [50, 50]
    for name in ("top_p 0.9", "min_p 0.05"):
        assert counts[name][0] < counts[name][1]
    colder = counts["temperature 0.7, top_p 0.9"]
    assert all(cold < warm for cold, warm in zip(colder, counts["top_p 0.9"], strict=True))
    assert "top-k always leaves 50, among them 49 that are wrong" in chapter.prose


def test_the_picture_narrows_from_stage_to_stage(chapter: Chapter) -> None:
    shown = chapter.output_of("picture(story, temperature=0.8")
    assert re.search(r"token the model temperature 0.8 min_p 0.02 top_k 20 top_p 0.6", shown)
    counts = re.search(r"tokens left ([\d, ]+)", shown)
    assert counts
    numbers = [int(count.replace(",", "")) for count in counts.group(1).split()]
    assert numbers[:2] == [VOCABULARY] * 2
    assert numbers[1] > numbers[2] > numbers[3] > numbers[4] > 1, "every filter shows its work"


def test_noise_and_the_best_of_it_is_a_draw(chapter: Chapter) -> None:
    lines = [line for line in chapter.output_of("winners = ").splitlines() if line]
    wanted, found = (literal_eval(line.partition(":")[2].strip()) for line in lines)
    for want, have in zip(map(float, wanted), map(float, found), strict=True):
        assert abs(want - have) <= 4 * math.sqrt(want * (1 - want) / 20_000) + 1e-3


def test_only_one_number_per_row_changes_draws_that_were_kept(chapter: Chapter) -> None:
    shown = chapter.output_of("for name, draw in {")
    found = dict(re.findall(r"(.+): (\d+) of \d+ changed", shown))
    assert int(found["a noise per token"]) == 0
    assert int(found["one number per row"]) > 50
    assert all(int(count) > 150 for count in re.findall(r"of (\d+) changed", shown))


def test_a_generator_with_a_state_hears_its_neighbours(chapter: Chapter) -> None:
    alone, beside = re.findall(
        r": ('.*'|\".*\")$", chapter.output_of("obvious = EngineParts"), re.M
    )
    assert alone != beside


def test_draws_that_are_looked_up_do_not(chapter: Chapter) -> None:
    shown = chapter.output_of("alone, _ = tokens_of([story])")
    ways = re.findall(r"(.+): (the same|others), preempted (\d+) times", shown)
    assert len(ways) == 3
    assert all(same == "the same" for _, same, _ in ways)
    lost = {name: int(count) for name, _, count in ways}
    assert lost["too few blocks"] > 0
    assert lost["beside three others"] == 0


def test_penalties_by_hand_and_in_a_text(chapter: Chapter) -> None:
    shown = chapter.output_of("used = [[3]], [[0, 0, 0]]")
    numbers = [literal_eval(found) for found in re.findall(r"\[.*\]", shown)]
    assert numbers == [[1, 1, 0, -2], [0.5, 1, 0, -1], [1.5, 1, 0, -1]]
    lines = [line for line in chapter.output_of("fruit = ").splitlines() if line]
    texts = [literal_eval(line.rpartition(": ")[2]) for line in lines]
    assert [text.split()[0].strip(",.") for text in texts].count("apple") == 3
    assert "apple" not in texts[1]
    assert "repetition" in lines[1]
    assert "Only repetition looks at the prompt" in chapter.prose


def test_log_probabilities_are_raw(chapter: Chapter) -> None:
    shown = chapter.output_of("certain, free = ")
    entries = re.findall(r"(-\d\.\d\d) (\d+) ", shown)
    assert len(entries) == 8
    (certain, rank), *_ = entries
    assert rank == "1"
    assert float(certain) < -1, "certain to be drawn, and far from certain for the model"
    assert any(int(rank) > 1 for _, rank in entries[2:])


def test_breaking_it(chapter: Chapter) -> None:
    lines = [line for line in chapter.output_of("def choices(").splitlines() if line]
    right, nothing, different, same = (literal_eval(line.partition(": ")[2]) for line in lines)
    assert nothing != right
    assert len(set(different)) == 3
    assert len(set(same)) == 1, "three choices are one"
    assert all("endoftext" in text for text in nothing), "token 0 is an end token"


def test_exercises_are_shown_not_started(chapter: Chapter) -> None:
    assert len(MINE) == 4
    for exercise in MINE:
        shown = chapter.output_of(f'grade("{exercise.id}")')
        assert "not started yet: open practice/sampling.py" in shown
        assert "PASS" not in shown
    shown = chapter.output_of("yours = engine_parts(")
    assert "yours: nothing yet" in shown
    assert "the reference's tokens: True" in shown


def kept(probabilities: list[float], **numbers: float) -> list[int]:
    off = {"temperature": 1.0, "min_p": 0.0, "top_k": 0, "top_p": 1.0} | numbers
    columns = [torch.tensor([value]) for value in off.values()]
    row = filter_logits(torch.tensor([probabilities]).log(), *columns)[0]
    return row.isfinite().nonzero().flatten().tolist()


def test_quiz(chapter: Chapter) -> None:
    four = [0.5, 0.3, 0.15, 0.05]
    assert kept(four, top_k=2, top_p=0.6) == [0]
    assert kept(four, top_k=2, top_p=0.65) == [0, 1]
    assert [0.5 / 0.8, round(0.3 / 0.8, 3)] == [0.625, 0.375]
    assert ".625 and .375 of their sum" in chapter.section("Quiz")
    best = [0.9, 0.0091, 0.0089]
    assert kept(best, min_p=0.1, temperature=2.0) == [0, 1]
    assert "Tokens down to a hundredth of the best" in chapter.section("Quiz")
    off = torch.zeros(1)
    after = apply_penalties(torch.tensor([[-3.0]]), [[0]], [[]], torch.tensor([1.5]), off, off)
    assert after.item() == -4.5
    assert "Dividing would give -2" in chapter.section("Quiz")
