"""Chapter 05: the numbers in its prose are those of the engine, of its cells, or of arithmetic."""

from __future__ import annotations

import re
from ast import literal_eval

import pytest

from judge.exercises import find
from mini_engine.control.block_pool import BlockPool
from mini_engine.control.prefix_cache import PrefixCache
from mini_engine.control.request import Request
from tests.chapters.chapter import Chapter


@pytest.fixture(scope="module")
def chapter() -> Chapter:
    return Chapter("05_prefix_cache.ipynb")


def serve(cache: PrefixCache, tokens: list[int]) -> int:
    request = Request("r", tokens)
    hit = cache.lookup(request)
    cache.admit(request, hit)
    cache.grow(request, len(tokens))
    cache.release(request)
    return len(hit) * cache.block_size


def test_a_chat_computes_each_turn_once(chapter: Chapter) -> None:
    printed = chapter.output_of("def serve_chat(caching)")
    sizes = literal_eval(printed.split("prompts: ")[1].split(" - ")[0])
    shown = chapter.output_of("cached, trace = serve_chat")
    hits = [0, 32, 64]
    assert "always a multiple of the block size: 32, 64." in chapter.prose
    for turn, (size, hit) in enumerate(zip(sizes, hits, strict=True), start=1):
        assert f"{turn} {size} {hit} {size - hit}" in shown
    assert f"all {sum(sizes)} {sum(hits)} {sum(sizes) - sum(hits)}" in shown
    assert "all answers the same: True" in shown
    assert sum(sizes) - sum(hits) < sum(sizes) / 2
    assert "half of the work is gone" in chapter.prose


def test_a_name_covers_all_tokens_before(chapter: Chapter) -> None:
    cache = PrefixCache(BlockPool(16), 4)
    start, other, end = [1, 2, 3, 4], [0, 0, 0, 0], [5, 6, 7, 8, 9]
    first = [serve(cache, start + end), serve(cache, [*other, 9]), serve(cache, other + end)]
    assert first == [0, 0, 4]
    shown = chapter.output_of("behind_other = serve")
    assert "first: 0 - another start: 0" in shown
    assert "behind the other start: 4" in shown
    assert "at position 1: [4, 0]" in shown
    assert "so 4 tokens were found" in chapter.prose


def test_at_least_one_token_is_computed(chapter: Chapter) -> None:
    shown = chapter.output_of("for length in (47, 48, 49, 64, 65)")
    for length in (47, 48, 49, 64, 65):
        again = length - (length - 1) // 16 * 16
        assert f"{length} {length} {again}" in shown
    assert "still 16 are computed again" in chapter.prose
    assert "With 49 tokens the same three blocks are a hit" in chapter.prose


def test_hit_rates_follow_from_what_is_shared(chapter: Chapter) -> None:
    shown = chapter.output_of("workloads = {")
    for name, shared in (("a system prompt of 300 tokens", 300), ("few-shot examples, 850", 850)):
        rates = []
        for size in (16, 64):
            found = 39 * (shared // size * size)
            rates.append(f"{found / (40 * (shared + 30)):.1%}")
        assert re.search(rf"{name}.* {shared + 30} {rates[0]} {rates[1]}", shown)
    turns = [40 + 90 * turn + 30 for turn in range(5)]
    for size in (16, 64):
        later = sum((40 + 90 * turn) // size * size for turn in range(1, 5))
        first = 40 // size * size
        rate = (8 * later + 7 * first) / (8 * sum(turns))
        assert f"{rate:.1%}" in next(line for line in shown.splitlines() if "chat" in line)
    assert "nothing in common 30 0.0% 0.0%" in shown
    assert "Small blocks find more" in chapter.prose


def test_the_page_is_paid_for_once(chapter: Chapter) -> None:
    shown = chapter.output_of("measured = {caching")
    rows = re.findall(r"\? (\d+) (\d+) ([\d,.]+) ([\d,.]+)", shown)
    assert len(rows) == 3
    found = [int(row[1]) for row in rows]
    assert found[0] == 0
    assert all(hit % 16 == 0 and hit >= 128 for hit in found[1:])
    for _, _, slow, fast in rows[1:]:
        assert float(fast.replace(",", "")) < float(slow.replace(",", ""))


def test_two_requests_of_one_step_share(chapter: Chapter) -> None:
    shown = chapter.output_of("together = LLMEngine")
    assert "computed: {'A': 40, 'B': 8} - found: {'A': 0, 'B': 32}" in shown
    held = [literal_eval(line.split("holds ")[1]) for line in shown.splitlines() if "holds" in line]
    shared = held[0].keys() & held[1].keys()
    assert shared == {0, 1}
    assert all(held[0][block] == 2 for block in shared)
    assert "Blocks 0 and 1 have two holders" in chapter.prose


def test_the_end_of_a_prefix_goes_first(chapter: Chapter) -> None:
    shown = chapter.output_of("free list, reused first")
    assert "A 0 3, 2, 1, 0" in shown
    assert "B 0 1, 0, 2, 3" in shown
    assert "A again 8" in shown
    assert "A gave its blocks back as 3, 2, 1, 0. B took 3 and 2" in chapter.prose


def test_a_cache_without_chains_serves_foreign_text(chapter: Chapter) -> None:
    right, _, wrong, blocks = chapter.output_of("dog = engine.encode").splitlines()[:4]
    assert right.startswith("PrefixCache -")
    assert wrong.startswith("OwnTokensOnly -")
    assert "dog" not in right
    assert "dog" in wrong
    dog, cat, last = (literal_eval(table) for table in re.findall(r"\[.*?\]", blocks))
    assert last[0] == cat[0]
    assert last[1:4] == dog[1:4] == [1, 2, 3]
    assert "a cat's block, 5, and goes on with the dog's: 1, 2, 3." in chapter.prose


def test_equal_hashes_share_nothing(chapter: Chapter) -> None:
    assert hash((0, 11, 12, 13)) == hash((2**61 - 1, 11, 12, 13))
    shown = chapter.output_of("ours, theirs = ")
    assert "different tokens: True - the same hash: True" in shown
    assert "found with the same hash for everything: 0" in shown


def test_the_clock_tells_who_got_the_letter(chapter: Chapter) -> None:
    shown = chapter.output_of("zip(guesses, shared, apart")
    rows = re.findall(r"([A-Z]\w+ [A-Z]\w+) (\d+) ([\d.]+) ([\d.]+)", shown)
    assert [name for name, *_ in rows] == ["Tom Baker", "Ann Lee", "Maria Lopez", "Igor Petrov"]
    times = {name: float(fast) for name, _, fast, _ in rows}
    found = {name: int(hit) for name, hit, _, _ in rows}
    assert [name for name, hit in found.items() if hit] == ["Maria Lopez"]
    assert min(times, key=lambda name: times[name]) == "Maria Lopez"
    assert times["Maria Lopez"] < 0.6 * min(t for n, t in times.items() if n != "Maria Lopez")
    assert "found with another salt: [0, 0, 0, 0]" in shown


def test_the_map_shows_shared_blocks_and_whose_they_are(chapter: Chapter) -> None:
    shown = chapter.output_of("records = conversation()")
    sentence = re.search(
        r"(\d+) of 18 blocks are held, (\d+) of them shared; (\d+) are free", shown
    )
    assert sentence
    held, shared, free = (int(number) for number in sentence.groups())
    assert held + free == 18
    assert shared > 0
    assert "A3 What is the capital" in shown
    assert "B3 How many legs" in shown
    assert "A, C, E are Ann's requests, B, D, F Ben's" in chapter.prose


def test_exercises_are_shown_not_started(chapter: Chapter) -> None:
    for exercise in find("ch05"):
        shown = chapter.output_of(f'grade("{exercise.id}")')
        assert "not started yet: open practice/prefix_cache.py" in shown
        assert "PASS" not in shown


def test_quiz(chapter: Chapter) -> None:
    cache = PrefixCache(BlockPool(16), 16)
    request = Request("turn 1", list(range(50)))
    cache.grow(request, 49)  # the last sampled token is never fed back
    assert 16 * len(cache.lookup(Request("turn 2", list(range(55))))) == 48
    assert "48: three full blocks" in chapter.prose
    blocks_needed, free, hit, hit_is_free = 5, 4, 3, 3
    assert blocks_needed - hit + hit_is_free > free
    assert "taking the hit leaves 1 of the 4 free ones" in chapter.prose
